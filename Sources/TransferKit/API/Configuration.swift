public import Logging
package import SystemPackage

/// Settings that apply to all sessions of a queue.
public struct QueueConfiguration: Sendable {
    /// The logger of the queue and of its transports. Messages can have the metadata keys `queue`, `session`, `account`, `endpoint`, `item` and
    /// `attempt`. These keys are stable across versions. <doc:ObservingTransfers> lists the messages.
    public var logger: Logger

    /// The policy for the order in which sessions start.
    public var ordering: QueueOrdering

    /// The maximum number of active sessions; values below 1 count as 1. A limit that ``TransferQueue/setMaxConcurrentSessions(_:account:)`` stored
    /// takes precedence, and ``maxConcurrentSessionsOverride`` takes precedence over both. In a strict queue, the maximum is 1.
    public var maxConcurrentSessions: Int

    /// How long completed sessions stay in the queue. A value stored by ``TransferQueue/setRetention(_:)`` takes precedence.
    public var retention: Retention

    /// The number of events that the change log keeps; values below 1 count as 1. See ``TransferQueue/events(since:)``. The log can temporarily
    /// contain up to a tenth more events. The log keeps fewer events if they would take more than about 64 MiB.
    public var changeLogLimit: Int

    /// The minimum free space on the file system of the storage folder, in bytes; 0 for no minimum. Below the minimum, no session starts, but running
    /// sessions continue. A minimum that ``TransferQueue/setDiskFloor(_:)`` stored takes precedence, and ``diskFloorOverride`` takes precedence over
    /// both.
    ///
    /// Default: 64 MiB, about the maximum size of the change log. With this margin, running sessions can store their progress for a while when the
    /// disk fills up.
    public var diskFloor: Int64

    /// The network condition until the first call of ``TransferQueue/setNetworkCondition(_:)``.
    public var network: NetworkCondition

    /// The maximum number of active sessions in this process; values below 1 count as 1. Overrides the stored limit until
    /// ``TransferQueue/setMaxConcurrentSessions(_:account:)`` is called for the queue. Default: nil, for no override.
    public var maxConcurrentSessionsOverride: Int?

    /// The minimum free space on the file system of the storage folder, in bytes, for this process only. Overrides the stored minimum until
    /// ``TransferQueue/setDiskFloor(_:)`` is called. Default: nil, for no override.
    public var diskFloorOverride: Int64?

    /// The interval of ``QueueEvent/Kind/totalProgress(_:)`` events while sessions run, at least 0.1 s. Default: nil, for no such events. For
    /// each event, the queue reads the totals from its database.
    public var totalProgressInterval: Duration?

    /// Returns the free space, in bytes, of a folder's file system; nil if it is unknown. Tests replace it.
    package var freeSpace: @Sendable (FilePath) -> Int64? = { DiskSpace.free(at: $0) }

    /// The source of time. Tests replace it.
    package var clock = EngineClock.system

    /// Returns a random factor in 0 ..< 1 for a backoff delay (full jitter). Tests replace it.
    package var randomFraction: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Called with each change of a file's progress before the queue stores the change: a checkpoint, a restart, the completion, a failure, or
    /// the discovery that the remote name refers to a folder. Also called when the transport reports whether the server may have created something
    /// permanent for the file, such as a row in the server's database. The file's transfer waits until the observer returns. If the observer
    /// throws an error, the queue does not store the change, and the run of the session ends.
    package var progressObserver: (@Sendable (SessionID, FileProgress) async throws -> Void)?

    /// Called before and after each statement on the writing database connection. Tests set it.
    package var storeObserver: (@Sendable (StoreStep) -> Void)?

    /// The maximum number of rows that one transaction changes when the queue removes, quarantines or resets a session, or removes unfinished
    /// uploads.
    package var rowsPerSweep = QueueStore.maximumRowsPerSweep

    /// Called before a run inspects a local file or folder, on the thread that inspects it. Tests set it.
    package var localReadObserver: (@Sendable (FilePath) -> Void)?

    /// The maximum number of files and folders in a session with remote folders. The limit prevents an endless listing from filling the disk
    /// of the storage folder.
    package var maximumListedNames: Int64 = 10_000_000

    /// Creates a configuration.
    public init(
        ordering: QueueOrdering = .inOrder, maxConcurrentSessions: Int = 1, retention: Retention = .keepAll,
        changeLogLimit: Int = 100_000, diskFloor: Int64 = 64 << 20, network: NetworkCondition = .unconstrained,
        logger: Logger = Logger(label: "transferkit")
    ) {
        self.ordering = ordering
        self.maxConcurrentSessions = max(1, maxConcurrentSessions)
        self.retention = retention
        self.logger = logger
        self.changeLogLimit = changeLogLimit
        self.diskFloor = max(0, diskFloor)
        self.network = network
    }
}
