import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct LogTests {
    private let fixture: QueueFixture
    private let log = CountingLog(warnings: Locked(0))

    init() throws {
        fixture = try QueueFixture()
    }

    /// The messages at level info and above that begin with `start`.
    private func messages(startingWith start: String) -> [(level: Logger.Level, text: String, metadata: [String: String])] {
        log.messages.withLock { $0.filter { $0.level >= .info && $0.text.hasPrefix(start) } }
    }

    @Test func respectsLogLevel() async throws {
        fixture.memory.failNext(with: TransferError(.permanent, .unsupported, "No."), for: "1")
        var logger = Logger(label: "test") { _ in log }
        logger.logLevel = .error
        let queue = try await fixture.open(logger: logger)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        _ = try? await session.value
        await queue.shutdown()
        let levels = log.messages.withLock { $0.map(\.level) }
        #expect(!levels.isEmpty && levels.allSatisfy { $0 >= .error })
    }

    @Test func logsStartAndEndOfSessions() async throws {
        fixture.memory.failNext(with: TransferError(.permanent, .unsupported, "No."), for: "2")
        let queue = try await fixture.open(logger: Logger(label: "test") { _ in log })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let arrived = try await queue.enqueue(fixture.upload("1"))
        let refused = try await queue.enqueue(fixture.upload("2"))
        try await queue.start()
        _ = try await arrived.value
        _ = try? await refused.value
        await queue.shutdown()

        let folder = fixture.folder.path.appending("store").string
        #expect(log.messages.withLock { $0.allSatisfy { $0.metadata["queue"] == folder } })
        for text in ["Opened the queue.", "The queue started.", "The queue stopped.", "Shut down the queue."] {
            #expect(messages(startingWith: text).count == 1, "\(text)")
        }
        #expect(messages(startingWith: "A session started.").map { $0.metadata["session"] } == ["\(arrived.id)", "\(refused.id)"])
        let completed = try #require(messages(startingWith: "A session completed.").first)
        #expect(completed.metadata["session"] == "\(arrived.id)" && completed.metadata["account"] == "a")
        let failed = try #require(messages(startingWith: "A session failed: ").first)
        #expect(failed.level == .error && failed.metadata["session"] == "\(refused.id)" && failed.metadata["account"] == "a")
        let attempts = messages(startingWith: "An attempt failed: ")
        #expect(attempts.map { $0.metadata["attempt"] } == ["1"])
        #expect(attempts.allSatisfy { $0.metadata["item"] == "0" && $0.metadata["account"] == "a" && $0.metadata["endpoint"] != nil })
    }
}
