public import Logging
package import SystemPackage

/// Settings that apply to all sessions of a queue.
public struct QueueConfiguration: Sendable {
    /// The logger of the queue and of its transports. Messages can have the metadata keys `queue`, `session`, `account`, `endpoint`, `item`
    /// and `attempt`, which later versions keep. <doc:ObservingTransfers> lists the messages.
    public var logger: Logger

    /// The policy for the order in which sessions start.
    public var ordering: QueueOrdering

    /// The maximum number of active sessions, at least 1, unless ``TransferQueue/setMaxConcurrentSessions(_:account:)`` stored another
    /// limit, or ``maxConcurrentSessionsOverride`` is set. A strict queue always uses 1.
    public var maxConcurrentSessions: Int

    /// How long completed sessions stay in the queue, unless ``TransferQueue/setRetention(_:)`` stored another value.
    public var retention: Retention

    /// The number of events that the change log keeps, at least 1; see ``TransferQueue/events(since:)``. The log can temporarily contain up
    /// to a tenth more events. The log keeps fewer events if this number of events would take more than about 64 MiB.
    public var changeLogLimit: Int

    /// The minimum free space on the file system of the storage folder, in bytes; 0 for no minimum. Below the minimum, no session starts,
    /// but running sessions continue. Applies unless ``TransferQueue/setDiskFloor(_:)`` stored another minimum, or ``diskFloorOverride`` is
    /// set.
    ///
    /// Default: 64 MiB, about the maximum size of the change log. This margin lets running sessions store their progress for a while when the disk
    /// fills up.
    public var diskFloor: Int64

    /// The initial network condition, until ``TransferQueue/setNetworkCondition(_:)`` changes it.
    public var network: NetworkCondition

    /// The maximum number of active sessions in this process, at least 1. Overrides the stored limit until
    /// ``TransferQueue/setMaxConcurrentSessions(_:account:)`` is called for the queue. Default: nil, for no override.
    public var maxConcurrentSessionsOverride: Int?

    /// The minimum free space on the file system of the storage folder, in bytes, for this process only. Overrides the stored minimum until
    /// ``TransferQueue/setDiskFloor(_:)`` is called. Default: nil, for no override.
    public var diskFloorOverride: Int64?

    /// The interval of ``QueueEvent/Kind/totalProgress(_:)`` events while sessions run, at least 0.1 s. Default: nil, for no such events. Each event
    /// reads the totals from the store.
    public var totalProgressInterval: Duration?

    /// Returns the free space, in bytes, of a folder's file system; nil if it is unknown. Tests replace it.
    package var freeSpace: @Sendable (FilePath) -> Int64? = { DiskSpace.free(at: $0) }

    /// The source of time. Tests replace it.
    package var clock = EngineClock.system

    /// Returns a random factor in 0 ..< 1 for a backoff delay (full jitter). Tests replace it.
    package var randomFraction: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Receives each change of a file before the queue stores it: a checkpoint, a restart, the completion, or the discovery that the remote
    /// name refers to a folder. Also receives whether the server may have created something permanent for the file, such as a database record.
    /// The transfer of the file waits until the observer returns. If the observer throws an error, the queue does not store the change, and the
    /// run of the session ends.
    package var progressObserver: (@Sendable (SessionID, FileProgress) async throws -> Void)?

    /// Called before and after each statement on the database connection that writes. Tests set it.
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
