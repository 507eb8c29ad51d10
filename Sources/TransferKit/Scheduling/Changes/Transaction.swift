import TransferCore

/// The consequences of one or more inputs. The caller stores all writes in one database transaction. The caller then returns the result,
/// publishes the events, and performs the actions.
package struct Transaction: Sendable {
    package var writes: [StoreWrite] = []
    package var events: [QueueEvent.Kind] = []
    package var actions: [Action] = []
    package var result = InputResult()

    package init(writes: [StoreWrite] = [], events: [QueueEvent.Kind] = [], actions: [Action] = []) {
        self.writes = writes
        self.events = events
        self.actions = actions
    }

    package enum Action: Sendable, Equatable {
        /// Begins a run, with a number that is unique in this queue until the queue is closed.
        case run(SessionKey, SessionID, run: UInt64, Account)
        case interrupt(SessionKey, run: UInt64)
        /// Makes the waiting files of a session due immediately, including files in its current run, because of a command such as `run` or
        /// `retryEndpoints`.
        case skipBackoff(SessionKey)
        /// Forgets the failures that earlier runs of a session recorded.
        case forget(SessionKey)
        /// Ends the streams of quarantined sessions, and keeps their spool files.
        case keepStreams([SessionID])
        /// Passes changed options of a session to its run.
        case refresh(SessionKey)
        /// Applies the changed rate limit of an account, or of the queue if the key is nil.
        case pace(AccountKey?)
        /// Forgets which of an account's endpoints accepted its credentials.
        case forgetAuthentication(Account)
        /// Notifies a running session of added items.
        case grow(SessionKey, ItemFigures)
    }

    /// Adds the writes, events and actions of another transaction; keeps this transaction's result.
    package mutating func append(_ other: Transaction) {
        if writes.isEmpty { writes = other.writes } else { writes += other.writes }
        events += other.events
        actions += other.actions
    }
}
