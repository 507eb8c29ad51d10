import TransferCore

/// What follows from one or more inputs, in the order in which it has to happen: first all writes in one transaction of the store, then the
/// answer and the events, then the actions.
package struct Transaction: Sendable {
    package var writes: [StoreWrite] = []
    package var events: [QueueEvent.Kind] = []
    package var actions: [Action] = []
    package var answer = Answer()

    package init(writes: [StoreWrite] = [], events: [QueueEvent.Kind] = [], actions: [Action] = []) {
        self.writes = writes
        self.events = events
        self.actions = actions
    }

    /// Something to do outside the scheduler.
    package enum Action: Sendable, Equatable {
        /// Begin a run, with a number that no other run of the process has.
        case run(SessionKey, SessionID, run: UInt64, Account)
        /// Tell a run to end.
        case interrupt(SessionKey, run: UInt64)
        /// Somebody asked for the run that begins next: the session's files wait no longer for their next attempts.
        case hurry(SessionKey)
        /// What earlier runs remember of a session's failures no longer counts.
        case forget(SessionKey)
        /// A session's options changed.
        case refresh(SessionKey)
        /// The rate limit of an account changed, or of the queue if it is nil.
        case pace(AccountKey?)
        /// Nothing is known any more of what an account's endpoints think of its credentials.
        case distrust(Account)
        /// So many items were added to a session that runs.
        case grow(SessionKey, ItemFigures)
    }

    /// Adds what follows from another input; the answer is left alone.
    package mutating func append(_ other: Transaction) {
        if writes.isEmpty { writes = other.writes } else { writes += other.writes }
        events += other.events
        actions += other.actions
    }
}
