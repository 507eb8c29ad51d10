/// What follows from one or more inputs, in the order in which it has to happen: first all writes in one transaction of the store, then the
/// events, then the actions.
package struct Transaction: Sendable {
    package var writes: [StoreWrite] = []
    package var events: [QueueEvent.Kind] = []
    package var actions: [Action] = []

    package init(writes: [StoreWrite] = [], events: [QueueEvent.Kind] = [], actions: [Action] = []) {
        self.writes = writes
        self.events = events
        self.actions = actions
    }

    /// Something to do outside the scheduler.
    package enum Action: Sendable, Equatable {
        case run(SessionKey, SessionID, activation: UInt64, Account)
        case interrupt(SessionKey, activation: UInt64)
    }

    package mutating func append(_ other: Transaction) {
        writes += other.writes
        events += other.events
        actions += other.actions
    }
}
