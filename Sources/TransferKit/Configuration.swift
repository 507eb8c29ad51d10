public import Logging
public import SystemPackage

/// Where a queue lives.
public struct Storage: Sendable {
    package let folder: FilePath
    package let ownerTimeout: Duration

    /// A folder of the queue's own, made with mode 0700 if it does not exist. One process owns it at a time.
    ///
    /// - Parameter ownerTimeout: How long to wait for another owner to let go. Default: not at all.
    public static func folder(_ folder: FilePath, ownerTimeout: Duration = .zero) -> Storage {
        Storage(folder: folder, ownerTimeout: ownerTimeout)
    }
}

/// What is the same for all sessions of a queue.
public struct QueueConfiguration: Sendable {
    /// Where the queue logs to, with the stable metadata keys `session`, `item`, `account` and `endpoint`.
    public var logger: Logger

    /// How many events the change log keeps, at least 1; see ``TransferQueue/events(since:)``. Up to a tenth more are kept for a while, and fewer
    /// if they take more than 64 MiB.
    public var changeLogLimit: Int

    /// Time, injected by tests.
    package var clock = EngineClock.system

    /// The fraction of each backoff that is waited, in 0 ..< 1; injected by tests.
    package var randomFraction: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Makes a configuration.
    public init(logger: Logger = Logger(label: "transferkit"), changeLogLimit: Int = 100_000) {
        self.logger = logger
        self.changeLogLimit = changeLogLimit
    }
}
