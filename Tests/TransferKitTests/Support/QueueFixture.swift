import Foundation
import Logging
import SystemPackage
import TransferCore
import TransferKit
import TransportTesting

/// A storage folder, a memory transport and a clock. With one fixture, a test can open one queue after another.
struct QueueFixture {
    let folder: TemporaryFolder
    let memory: MemoryTransport
    let clock = TestClock()

    init(memory: MemoryTransport = MemoryTransport(chunkSize: 1_000)) throws {
        folder = try TemporaryFolder()
        self.memory = memory
    }

    /// Opens a queue. Every delay is the longest that the retry policy allows, so that tests can predict the delays.
    func open(
        transports: [any Transport]? = nil, delegate: (any TransferQueueDelegate)? = nil, changeLogLimit: Int = 100_000,
        ordering: QueueOrdering = .inOrder, retention: Retention = .keepAll, logger: Logger? = nil,
        localReadObserver: (@Sendable (FilePath) -> Void)? = nil, storeObserver: (@Sendable (StoreStep) -> Void)? = nil,
        progressObserver: (@Sendable (SessionID, FileProgress) async throws -> Void)? = nil,
        rowsPerSweep: Int = QueueStore.maximumRowsPerSweep
    ) async throws -> TransferQueue {
        var configuration = QueueConfiguration(ordering: ordering, retention: retention, changeLogLimit: changeLogLimit)
        configuration.logger.logLevel = .critical
        if let logger { configuration.logger = logger }
        configuration.clock = clock.engineClock
        configuration.randomFraction = { 1 }
        configuration.localReadObserver = localReadObserver
        configuration.storeObserver = storeObserver
        configuration.progressObserver = progressObserver
        configuration.rowsPerSweep = rowsPerSweep
        return try await TransferQueue(
            storage: .folder(folder.path.appending("store")), transports: transports ?? [memory], configuration: configuration,
            delegate: delegate)
    }

    /// Opens a queue with the accounts "a" and "b".
    func openWithAccounts() async throws -> TransferQueue {
        let queue = try await open()
        for name in ["a", "b"] { try await queue.save(Account(name, endpoints: [memory.endpoint(host: name)])) }
        return queue
    }

    /// Creates local files of `size` bytes each, and returns a request to upload them.
    func upload(_ names: String..., size: Int = 10_000, to account: String = "a", options: SessionOptions = SessionOptions()) throws
        -> SessionRequest
    {
        try .upload(names.map { try folder.file($0, size: size) }, to: account, options: options)
    }

    func content(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: folder.path.appending(name).string))
    }
}

extension QueueEvents {
    /// Waits for the first event for which `body` returns a value. Returns this value, or nil if the events end first.
    func first<Value>(_ body: (QueueEvent.Kind) -> Value?) async -> Value? {
        for await event in self {
            if let value = body(event.kind) { return value }
        }
        return nil
    }
}
