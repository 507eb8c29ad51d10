public import Logging
public import SystemPackage

/// Where a queue lives.
public struct Storage: Sendable {
    package let folder: FilePath
    package let base: FilePath?
    package let ownerTimeout: Duration

    /// A folder of the queue's own, made with mode 0700 if it does not exist. One process owns it at a time.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - base: An absolute path of a folder that may be elsewhere the next time, such as an app's container. Local files below it are found
    ///     again there. nil for the one that the storage folder was opened with last, if ever with any.
    ///   - ownerTimeout: How long to wait for another owner to let go; anew if it does, and another one was faster. Default: not at all.
    public static func folder(_ folder: FilePath, base: FilePath? = nil, ownerTimeout: Duration = .zero) -> Storage {
        Storage(folder: folder, base: base, ownerTimeout: ownerTimeout)
    }
}

/// How the order of a queue is kept.
public enum QueueOrdering: String, Hashable, Sendable, Codable {
    /// Sessions start in order; what cannot start lets later ones pass.
    case inOrder
    /// One at a time, and nothing starts while anything before it is unfinished: waiting, running, paused or held. Failed and cancelled
    /// sessions do not stand in the way.
    case strict
}

/// How long completed sessions stay in the queue.
public enum Retention: Hashable, Sendable, Codable {
    /// Until the app removes them.
    case keepAll
    /// The last so many that completed.
    case count(Int)
    /// For so long after they completed.
    case age(Duration)
}

/// What is the same for all sessions of a queue.
public struct QueueConfiguration: Sendable {
    /// Where the queue logs to, with the stable metadata keys `session`, `item`, `account` and `endpoint`.
    public var logger: Logger

    /// How the order is kept.
    public var ordering: QueueOrdering

    /// How many sessions may be active at once, at least 1, until ``TransferQueue/setSessionLimit(_:account:)`` stores another limit. In a
    /// strict queue it is 1, whatever is set.
    public var sessionLimit: Int

    /// How long completed sessions stay in the queue.
    public var retention: Retention

    /// How many events the change log keeps, at least 1; see ``TransferQueue/events(since:)``. Up to a tenth more are kept for a while, and fewer
    /// if they take more than 64 MiB.
    public var changeLogLimit: Int

    /// With fewer free bytes on the file system of the storage folder than these, no session starts; what runs goes on. 0 for no floor. Default:
    /// 64 MiB, about what the change log may grow to, so that what runs can still be stored when others fill the disk.
    public var diskFloor: Int64

    /// What is known of the network until ``TransferQueue/setNetworkCondition(_:)`` says something else.
    public var network: NetworkCondition

    /// How many sessions may be active at once in this process, at least 1, whatever limit is stored; nil, the default, for the stored one. Holds until
    /// a limit is set with ``TransferQueue/setSessionLimit(_:account:)``.
    public var sessionLimitOverride: Int?

    /// Bytes that can still be written where a folder is; injected by tests.
    package var freeSpace: @Sendable (FilePath) -> Int64? = { DiskSpace.free(at: $0) }

    /// Time, injected by tests.
    package var clock = EngineClock.system

    /// The fraction of each backoff that is waited, in 0 ..< 1; injected by tests.
    package var randomFraction: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Told of every step of what changes the store; set by tests.
    package var storeObserver: (@Sendable (StoreStep) -> Void)?

    /// How many names a session takes from remote folders: a server that has no end must not fill the disk.
    package var mostListedNames: Int64 = 10_000_000

    /// Makes a configuration.
    public init(
        ordering: QueueOrdering = .inOrder, sessionLimit: Int = 1, retention: Retention = .keepAll,
        changeLogLimit: Int = 100_000, diskFloor: Int64 = 64 << 20, network: NetworkCondition = .unconstrained,
        logger: Logger = Logger(label: "transferkit")
    ) {
        self.ordering = ordering
        self.sessionLimit = max(1, sessionLimit)
        self.retention = retention
        self.logger = logger
        self.changeLogLimit = changeLogLimit
        self.diskFloor = max(0, diskFloor)
        self.network = network
    }
}
