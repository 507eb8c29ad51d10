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
    ///   - ownerTimeout: How long to wait for another owner to let go. Default: not at all.
    public static func folder(_ folder: FilePath, base: FilePath? = nil, ownerTimeout: Duration = .zero) -> Storage {
        Storage(folder: folder, base: base, ownerTimeout: ownerTimeout)
    }
}

/// What is the same for all sessions of a queue.
public struct QueueConfiguration: Sendable {
    /// Where the queue logs to, with the stable metadata keys `session`, `item`, `account` and `endpoint`.
    public var logger: Logger

    /// Time, injected by tests.
    package var clock = EngineClock.system

    /// The fraction of each backoff that is waited, in 0 ..< 1; injected by tests.
    package var randomFraction: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Makes a configuration.
    public init(logger: Logger = Logger(label: "transferkit")) {
        self.logger = logger
    }
}
