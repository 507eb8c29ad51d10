package import TransferCore

extension Scheduler {
    package struct Settings: Sendable, Equatable {
        package var transports: Set<TransportID>
        package var ordering: QueueOrdering
        /// The session limit if the database contains no limit. A strict queue ignores this limit.
        package var maxConcurrentSessions: Int
        /// The session limit that overrides the stored limit; nil for none.
        package var maxConcurrentSessionsOverride: Int?
        /// How long completed sessions stay in the queue if the database contains no retention.
        package var retention: Retention
        /// How long a session that yielded waits for another session to start. After this time, the session may start again if no other
        /// session can start.
        package var yieldDelay = Duration.seconds(5)
        package var network: NetworkCondition
        /// The minimum free space on the disk of the storage folder, in bytes, if the database contains no minimum. Below the minimum,
        /// no session starts.
        package var diskFloor: Int64
        /// The minimum free space that overrides the stored minimum; nil for none.
        package var diskFloorOverride: Int64?
        /// The time at which the process opened the database; nil to use the stored dates without checking whether they are plausible.
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
