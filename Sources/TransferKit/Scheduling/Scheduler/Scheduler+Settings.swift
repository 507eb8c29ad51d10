package import TransferCore

extension Scheduler {
    /// Settings for the lifetime of the scheduler.
    package struct Settings: Sendable, Equatable {
        package var transports: Set<TransportID>
        package var ordering: QueueOrdering
        /// The session limit if the store contains no limit. A strict queue ignores it.
        package var maxConcurrentSessions: Int
        /// The session limit that overrides the stored limit; nil for none.
        package var maxConcurrentSessionsOverride: Int?
        /// How long completed sessions stay if the store contains no retention.
        package var retention: Retention
        /// How long a session that yielded waits for another session to start. After this time, the session may start again if no other
        /// session can start.
        package var yieldDelay = Duration.seconds(5)
        /// The initial network condition, which applies until the app sets another condition.
        package var network: NetworkCondition
        /// The free space on the disk of the storage folder, in bytes, below which no session starts if the store contains no minimum.
        package var diskFloor: Int64
        /// The minimum of free space that overrides the stored minimum; nil for none.
        package var diskFloorOverride: Int64?
        /// The time at which the process opened the store; nil to use the dates in the store without checking whether they are plausible.
        package var openedAt: DualInstant?

        package init(
            transports: Set<TransportID>, ordering: QueueOrdering = .inOrder, maxConcurrentSessions: Int = 1,
            retention: Retention = .keepAll, network: NetworkCondition = .unconstrained, diskFloor: Int64 = 0
        ) {
            self.transports = transports
            self.ordering = ordering
            self.maxConcurrentSessions = maxConcurrentSessions
            self.retention = retention
            self.network = network
            self.diskFloor = diskFloor
        }
    }
}
