import Foundation
import Locking
import Logging
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.oneProcessAtATime) struct DownloadKillTests {
    private static let samples = 25

    @Test(arguments: [OverwritePolicy.never, .always]) func killDoesNotLoseOrRepeatBytes(_ policy: OverwritePolicy) async throws {
        let undisturbed = try TemporaryFolder()
        let killPointCount = Locked(0)
        try await DownloadStage(undisturbed.path, policy) { killPointCount.withLock { $0 += 1 } }.play()
        let count = killPointCount.withLock { $0 }
        let isExhaustive = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all"
        let distance = isExhaustive ? 1 : max(1, count / Self.samples)
        for killPoint in stride(from: isExhaustive ? 1 : Int.random(in: 1...distance), through: count, by: distance) {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [root = folder.path.string as String, policy = policy.rawValue as String, killPoint = killPoint as Int] in
                let killPointCount = Locked(0)
                let stage = try DownloadStage(FilePath(root), try #require(OverwritePolicy(rawValue: policy))) {
                    let number = killPointCount.withLock { killPointCount in
                        killPointCount += 1
                        return killPointCount
                    }
                    if number == killPoint { kill(getpid(), SIGKILL) }
                }
                try await stage.play()
                kill(getpid(), SIGKILL)
            }
            try await Self.check(folder.path, policy, "killed at kill point \(killPoint)")
        }
    }

    private static func check(_ root: FilePath, _ policy: OverwritePolicy, _ comment: Comment) async throws {
        let stage = try DownloadStage(root, policy)
        let queue = try await stage.open()
        var confirmed: [Int64: Int64] = [:]
        for session in try await queue.sessions() {
            for item in try await queue.items(of: session.id) where item.state != .completed {
                confirmed[item.position] = item.bytesDone
                guard item.bytesDone > 0 else { continue }
                let partFile = try #require(try stage.partFiles(of: item.source).first, comment)
                let content = try Data(contentsOf: URL(filePath: partFile.string))
                #expect(content.prefix(Int(item.bytesDone)) == stage.content.prefix(Int(item.bytesDone)), comment)
            }
        }
        if try await queue.sessions().isEmpty { try await stage.enqueue(on: queue) }
        try await queue.start()
        await queue.waitUntilIdle()
        let session = try #require(try await queue.sessions().first)
        #expect(session.state == .completed && session.statistics.bytesDone == Int64(2 * stage.content.count), comment)
        for attempt in stage.memory.attempts where attempt.startOffset < Int64(stage.content.count) {
            let position = DownloadStage.names.firstIndex(of: attempt.path.description).map(Int64.init)
            #expect(attempt.startOffset == position.flatMap { confirmed[$0] } ?? 0, comment)
        }
        await queue.shutdown()
        for name in DownloadStage.names {
            #expect(try Data(contentsOf: URL(filePath: stage.target.appending(name).string)) == stage.content, comment)
        }
        let names = try FileManager.default.subpathsOfDirectory(atPath: stage.target.string).sorted()
        #expect(names == ["file", "way", "way/other"], comment)
    }
}

/// A queue that downloads two files. A later process can open the same queue.
private struct DownloadStage {
    static let names = ["file", "way/other"]

    let memory = MemoryTransport(chunkSize: 1_000)
    let content = DownloadFixture.content(4_500)
    let target: FilePath
    private let root: FilePath
    private let policy: OverwritePolicy
    private let reachKillPoint: @Sendable () -> Void

    /// - Parameter reachKillPoint: Called at each point at which a test may kill the process.
    init(_ root: FilePath, _ policy: OverwritePolicy, reachKillPoint: @escaping @Sendable () -> Void = {}) throws {
        self.root = root
        self.policy = policy
        self.reachKillPoint = reachKillPoint
        target = root.appending("target")
        try FileManager.default.createDirectory(atPath: target.string, withIntermediateDirectories: true)
        // The modification time is fixed, so that the next process recognizes the files as unchanged.
        for name in Self.names { memory.provide(content, as: name, modificationTime: 1_000_000_000) }
    }

    func open() async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.storeObserver = { [reachKillPoint] step in
            if case .before(let sql) = step, sql.hasPrefix("SELECT") || sql.hasPrefix("PRAGMA") { return }
            reachKillPoint()
        }
        let queue = try await TransferQueue(
            storage: .folder(root.appending("store")), transports: [WatchedTransport(memory: memory, reachKillPoint: reachKillPoint)],
            configuration: configuration)
        if await queue.account("a") == nil { try await queue.save(Account("a", endpoints: [memory.endpoint()])) }
        return queue
    }

    @discardableResult
    func enqueue(on queue: TransferQueue) async throws -> TransferSession {
        let items = try Self.names.map { TransferItem.remote(try RemotePath($0), as: FilePath($0)) }
        return try await queue.enqueue(
            .download(items: items, from: "a", to: target, options: SessionOptions(filesInFlight: 1, overwrite: policy)))
    }

    func play() async throws {
        let queue = try await open()
        let session = try await enqueue(on: queue)
        try await queue.start()
        _ = try await session.value
        await queue.waitUntilIdle()
        await queue.shutdown()
    }

    func partFiles(of path: FilePath) throws -> [FilePath] {
        let folder = path.removingLastComponent()
        return try FileManager.default.contentsOfDirectory(atPath: folder.string)
            .filter { $0.hasPrefix(".\(path.lastComponent?.string ?? "").") && $0.hasSuffix(".part") }.map { folder.appending($0) }
    }
}

private struct WatchedTransport: Transport {
    let id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    let reachKillPoint: @Sendable () -> Void

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        reachKillPoint()
        let watched = AttemptReporter(
            progress: { sent, confirmed in
                reachKillPoint()
                reporter.report(sent: sent, confirmed: confirmed)
            },
            checkpoint: { checkpoint in
                reachKillPoint()
                try await reporter.save(checkpoint)
                reachKillPoint()
            },
            allowance: { reporter.allowance(upTo: $0) },
            total: { total in
                reachKillPoint()
                reporter.report(total: total)
            })
        let receipt = try await memory.perform(attempt, reporting: watched)
        reachKillPoint()
        return receipt
    }

    func shutdown() async {}
}
