import TransferCore

/// The writer's decisions on all pending inputs, before they are stored.
struct WriterRound {
    /// The reaction to a change that the store refuses permanently.
    enum Remedy: Equatable {
        /// Drops the input at this index; its caller gets the error.
        case refuse(Int)
        /// Quarantines the session.
        case quarantine(SessionKey)
    }

    private(set) var transaction = Transaction()
    private(set) var answers: [(envelope: Mailbox.Envelope, result: Result<Answer, QueueError>)] = []
    /// The number of writes before the first input, and after each input.
    private var start = 0
    private var ends: [Int] = []

    /// Decides on pending inputs, in their order.
    ///
    /// - Parameters:
    ///   - free: The free space on the store's disk, in bytes; nil if there is no new value.
    ///   - refused: The indices of inputs that the store refuses, with the error of each.
    init(_ envelopes: [Mailbox.Envelope], free: Int64?, refused: [Int: QueueError], _ scheduler: inout Scheduler, at now: DualInstant) {
        // This can't throw, because the scheduler only rejects commands.
        if let free, let part = try? scheduler.handle(.diskSpace(free), at: now) { transaction.append(part) }
        start = transaction.writes.count
        for (index, envelope) in envelopes.enumerated() {
            do throws(QueueError) {
                if let refusal = refused[index] {
                    if let part = Self.unstored(envelope.input, &scheduler, at: now) { transaction.append(part) }
                    throw refusal
                }
                let part = try scheduler.handle(envelope.input, at: now)
                transaction.append(part)
                answers.append((envelope, .success(part.answer)))
            } catch {
                answers.append((envelope, .failure(error)))
            }
            ends.append(transaction.writes.count)
        }
        transaction.append(scheduler.schedule(at: now))
    }

    /// Handles a refused input that takes effect although the store refuses its writes: a run that has ended no longer uses its slot.
    ///
    /// - Returns: The consequences without the writes; nil for any other input.
    private static func unstored(_ input: Input, _ scheduler: inout Scheduler, at now: DualInstant) -> Transaction? {
        guard case .report(let report) = input, report.content.isFinal, var part = try? scheduler.handle(input, at: now) else { return nil }
        part.writes = []
        return part
    }

    /// Chooses the reaction to a change that the store refuses permanently. A call that concerns only one session fails. Otherwise the
    /// session of the refused row is quarantined, so that other sessions continue. Nil if there is no such call or session.
    ///
    /// - Parameter scheduler: The state before the round.
    func remedy(for culprit: StoreRefusal.Culprit, _ scheduler: Scheduler) -> Remedy? {
        guard transaction.writes.indices.contains(culprit.index) else { return nil }
        let known = transaction.writes[culprit.index].session.flatMap { scheduler.sessionIndex[$0] == nil ? nil : $0 }
        guard culprit.index >= start, let input = ends.firstIndex(where: { $0 > culprit.index }) else {
            return known.map { .quarantine($0) }
        }
        switch answers[input].envelope.input {
        case .command(.quarantine), .report, .diskSpace, .tick:
            return known.map { .quarantine($0) } ?? .refuse(input)
        case .command(.perform(_, .one(let reference))), .command(.addItems(let reference, _)):
            guard let known, (try? scheduler.resolve(reference)) != known else { return .refuse(input) }
            return .quarantine(known)
        case .command:
            // If a value is too large, it came from the caller, not from the store.
            guard let known, !culprit.isTooLarge else { return .refuse(input) }
            return .quarantine(known)
        case .discarded, .postponed: return .refuse(input)
        }
    }
}
