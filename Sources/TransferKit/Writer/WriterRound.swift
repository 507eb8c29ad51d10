import TransferCore

/// The writer's decisions on all pending inputs. The decisions are not stored yet.
struct WriterRound {
    /// The reaction to a change that the database refuses permanently.
    enum Remedy: Equatable {
        /// Drops the input at this index, and returns the error to the caller that sent the input.
        case refuse(Int)
        /// Quarantines the session.
        case quarantine(SessionKey)
    }

    private(set) var transaction = Transaction()
    private(set) var results: [(envelope: Mailbox.Envelope, result: Result<InputResult, QueueError>)] = []
    /// The number of writes before the first input; ``ends`` has the number after each input.
    private var start = 0
    private var ends: [Int] = []

    /// Decides on pending inputs, in their order.
    ///
    /// - Parameters:
    ///   - free: The free space on the disk of the storage folder, in bytes; nil if there is no new value.
    ///   - refused: The errors of inputs that the database refuses, by the index of the input.
    init(_ envelopes: [Mailbox.Envelope], free: Int64?, refused: [Int: QueueError], _ scheduler: inout Scheduler, at now: DualInstant) {
        // This input can't fail, because the scheduler rejects only commands.
        if let free, let handled = try? scheduler.handle(.diskSpace(free), at: now) { transaction.append(handled) }
        start = transaction.writes.count
        for (index, envelope) in envelopes.enumerated() {
            do throws(QueueError) {
                if let refusal = refused[index] {
                    if let handled = Self.transactionWithoutWrites(envelope.input, &scheduler, at: now) { transaction.append(handled) }
                    throw refusal
                }
                let handled = try scheduler.handle(envelope.input, at: now)
                transaction.append(handled)
                results.append((envelope, .success(handled.result)))
            } catch {
                results.append((envelope, .failure(error)))
            }
            ends.append(transaction.writes.count)
        }
        transaction.append(scheduler.schedule(at: now))
    }

    /// Handles a refused input if the input reports the end of a run. Such an input takes effect although the database refuses its writes, because
    /// the end of a run frees a slot.
    ///
    /// - Returns: The input's transaction without its writes; nil if the input is not the end of a run.
    private static func transactionWithoutWrites(_ input: Input, _ scheduler: inout Scheduler, at now: DualInstant) -> Transaction? {
        guard case .report(let report) = input, report.content.isFinal, var handled = try? scheduler.handle(input, at: now) else {
            return nil
        }
        handled.writes = []
        return handled
    }

    /// Chooses the reaction to a change that the database refuses permanently. If the refused row belongs to the only session that a call names,
    /// the call fails. In most other cases, the session of the refused row is quarantined, so that other sessions continue.
    ///
    /// - Parameter scheduler: The state before the round.
    /// - Returns: The reaction; nil if the change belongs to neither an input nor a session.
    func remedy(for culprit: StoreRefusal.Culprit, _ scheduler: Scheduler) -> Remedy? {
        guard transaction.writes.indices.contains(culprit.index) else { return nil }
        let known = transaction.writes[culprit.index].session.flatMap { scheduler.sessionIndex[$0] == nil ? nil : $0 }
        guard culprit.index >= start, let input = ends.firstIndex(where: { $0 > culprit.index }) else {
            return known.map { .quarantine($0) }
        }
        switch results[input].envelope.input {
        case .command(.quarantine), .report, .diskSpace, .tick:
            return known.map { .quarantine($0) } ?? .refuse(input)
        case .command(.perform(_, .one(let reference))), .command(.addItems(let reference, _)), .command(.addProgress(let reference, _)),
            .command(.replaceItems(_, _, _, let reference)):
            guard let known, (try? scheduler.resolve(reference)) != known else { return .refuse(input) }
            return .quarantine(known)
        case .command:
            // A value that is too large came from the caller, not from the database.
            guard let known, !culprit.isTooLarge else { return .refuse(input) }
            return .quarantine(known)
        case .discarded, .postponed: return .refuse(input)
        }
    }
}
