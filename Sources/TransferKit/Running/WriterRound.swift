import TransferCore

/// What the writer makes of all that waits, before it is stored.
struct WriterRound {
    /// What to do about a change that the store would refuse however often it is asked.
    enum Remedy: Equatable {
        /// Nothing of the input at this index happens; whoever waits for it is told.
        case refuse(Int)
        /// The session is taken out of the queue.
        case setAside(SessionKey)
    }

    private(set) var transaction = Transaction()
    private(set) var answers: [(envelope: Mailbox.Envelope, result: Result<Answer, QueueError>)] = []
    /// How many writes there were before the first input, and after each.
    private var start = 0
    private var ends: [Int] = []

    /// Decides.
    ///
    /// - Parameters:
    ///   - free: What is left on the disk of the store, if that is news.
    ///   - refused: Inputs, by index, that the store will not have, and why.
    init(_ envelopes: [Mailbox.Envelope], free: Int64?, refused: [Int: QueueError], _ scheduler: inout Scheduler, at now: Moment) {
        // Nothing but commands is ever refused.
        if let free, let part = try? scheduler.handle(.diskSpace(free), at: now) { transaction.append(part) }
        start = transaction.writes.count
        for (index, envelope) in envelopes.enumerated() {
            do throws(QueueError) {
                if let refusal = refused[index] { throw refusal }
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

    /// Who is at fault when the store refuses a change for good: a call that concerns one session alone is told so; otherwise the session
    /// whose row it is has to leave, so that everything else goes on. Nil if it is neither.
    ///
    /// - Parameter scheduler: As it was before the round.
    func remedy(for culprit: StoreRefusal.Culprit, _ scheduler: Scheduler) -> Remedy? {
        guard transaction.writes.indices.contains(culprit.index) else { return nil }
        let known = transaction.writes[culprit.index].session.flatMap { scheduler.roster[$0] == nil ? nil : $0 }
        guard culprit.index >= start, let input = ends.firstIndex(where: { $0 > culprit.index }) else { return known.map { .setAside($0) } }
        switch answers[input].envelope.input {
        case .command(.perform(.quarantine, _)), .report, .diskSpace, .tick:
            return known.map { .setAside($0) } ?? .refuse(input)
        case .command(.perform(_, .one(let reference))), .command(.addItems(let reference, _)):
            guard let known, (try? scheduler.resolve(reference)) != known else { return .refuse(input) }
            return .setAside(known)
        case .command:
            // Too large is what the caller sent, not what is stored.
            guard let known, !culprit.isTooLarge else { return .refuse(input) }
            return .setAside(known)
        case .discarded, .postponed: return .refuse(input)
        }
    }
}
