import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The queue must open the database or report the damage, but must never crash.
///
/// Damages each page in turn if `TRANSFERKIT_DURABILITY` is `all`, otherwise a random sample of the pages.
@Suite(.oneProcessAtATime) struct DamagedPageTests {
    private static let sessionCount = 40
    private static let pageSize = 4_096

    enum Damage: String, CaseIterable, Sendable {
        case garbage, zeros, fewBytes, oneBit
    }

    @Test(arguments: Damage.allCases) func damagedPageDoesNotCrashProcess(_ damage: Damage) async throws {
        let folder = try await preparedDatabase()
        let pages = try Data(contentsOf: database(in: folder.path)).count / Self.pageSize
        #expect(pages > 10)
        let isExhaustive = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all"
        let distance = isExhaustive ? 1 : max(1, pages / 8)
        for page in Set([0] + stride(from: isExhaustive ? 0 : Int.random(in: 0..<distance), to: pages, by: distance)) {
            let seed = UInt64.random(in: 0...UInt64.max)
            let copy = try TemporaryFolder()
            try FileManager.default.copyItem(atPath: folder.path.appending("store").string, toPath: copy.path.appending("store").string)
            try overwrite(page, damage, seed, in: copy.path)
            await #expect(processExitsWith: .success, "page \(page), \(damage), seed \(seed)") {
                [root = copy.path.string as String] in
                try await Self.openReadAndRun(FilePath(root))
            }
        }
    }

    @Test func damagedWriteAheadLogLeavesConsistentDatabase() async throws {
        let folder = try TemporaryFolder()
        await #expect(processExitsWith: .signal(SIGKILL)) { [root = folder.path.string as String] in
            try await ScenarioRun.die(at: 400, of: .arranging, in: FilePath(root))
        }
        let log = URL(fileURLWithPath: folder.path.appending("store").appending("queue.sqlite-wal").string)
        let intactLog = try Data(contentsOf: log)
        for seed in 0..<8 {
            var generator = SplitMix64(seed: UInt64(seed))
            var content = intactLog
            let start = Int.random(in: 0..<content.count - 100, using: &generator)
            for index in start..<start + 100 { content[index] = UInt8.random(in: 0...255, using: &generator) }
            let copy = try TemporaryFolder()
            for name in ["store", "server"] {
                try FileManager.default.copyItem(atPath: folder.path.appending(name).string, toPath: copy.path.appending(name).string)
            }
            try content.write(to: URL(fileURLWithPath: copy.path.appending("store").appending("queue.sqlite-wal").string))
            // SQLite ignores the log from the damaged frame on, so the database has an earlier, consistent state.
            let stage = try await Stage(copy.path, usesTestClock: false)
            try StoreInspection(copy.path.appending("store")).expectNoContradictions("seed \(seed)")
            #expect(try await stage.queue.storeHealth().problems.isEmpty)
            await stage.queue.shutdown()
        }
    }

    @Test(arguments: [1, 50, 99, 4_095, 4_096, 8_192, 20_000]) func reportsTruncatedDatabaseWithoutChangingIt(_ length: Int) async throws {
        let folder = try await preparedDatabase()
        let file = database(in: folder.path)
        let content = try Data(contentsOf: file).prefix(length)
        try content.write(to: file)
        do {
            let stage = try await Stage(folder.path)
            _ = try await stage.queue.sessions()
            await stage.queue.shutdown()
            Issue.record("a database of \(length) bytes can't be complete")
        } catch let error as QueueError {
            #expect(error.code == .storageDamaged)
        }
        #expect(try Data(contentsOf: file) == content)
    }

    private static func openReadAndRun(_ root: FilePath) async throws {
        let stage: Stage
        do {
            stage = try await Stage(root)
        } catch let error as QueueError {
            #expect(error.code == .storageDamaged || error.code == .storageTooNew || error.code == .storageUnavailable)
            return
        }
        let ids = await stage.queue.sessionIDs()
        _ = try? await stage.queue.sessions()
        _ = try? await stage.queue.storeHealth()
        for id in ids { _ = try? await stage.queue.items(of: id) }
        try? await stage.queue.start()
        for _ in 0..<60 {
            stage.clock.advance(by: .seconds(1))
            _ = await stage.queue.status()
        }
        for id in ids.prefix(3) { try? await stage.queue.cancel(id, discarding: true) }
        let remaining = Set(await stage.queue.sessionIDs())
        await stage.queue.shutdown()
        do {
            let reopened = try await Stage(root)
            let quarantined = (try? StoreInspection(root.appending("store")).count("quarantine")) ?? 0
            #expect(await reopened.queue.sessionIDs().count + quarantined >= remaining.count)
            await reopened.queue.shutdown()
        } catch let error as QueueError {
            #expect(error.code == .storageDamaged || error.code == .storageUnavailable)
        }
    }

    private func overwrite(_ page: Int, _ damage: Damage, _ seed: UInt64, in root: FilePath) throws {
        var generator = SplitMix64(seed: seed)
        var content = try Data(contentsOf: database(in: root))
        let range = page * Self.pageSize..<(page + 1) * Self.pageSize
        switch damage {
        case .garbage: for index in range { content[index] = UInt8.random(in: 0...255, using: &generator) }
        case .zeros: for index in range { content[index] = 0 }
        case .fewBytes:
            for _ in 0..<8 { content[Int.random(in: range, using: &generator)] = UInt8.random(in: 0...255, using: &generator) }
        case .oneBit: content[Int.random(in: range, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        }
        try content.write(to: database(in: root))
    }

    private func database(in root: FilePath) -> URL {
        URL(fileURLWithPath: root.appending("store").appending("queue.sqlite").string)
    }

    /// Creates a database with sessions in several states, and an empty write-ahead log.
    private func preparedDatabase() async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.save(stage.account("a"))
        try await stage.queue.setMaxConcurrentSessions(4)
        let requests = try (0..<Self.sessionCount).map { number in
            var request = try stage.upload("p\(number)")
            request.tags = ["tag \(number % 3)"]
            request.options = SessionOptions(metadata: ["number": String(repeating: "\(number)", count: 100)])
            return request
        }
        _ = try await stage.queue.enqueue(requests)
        for number in 0..<4 { stage.server.close("p\(number)") }
        try await stage.queue.start()
        for number in 0..<4 { try await stage.server.reached("p\(number)") }
        stage.server.open("p0")
        try await stage.wait(for: "p0", .completed)
        try await stage.queue.cancel(Stage.id("p1"))
        _ = try await stage.queue.pause(Stage.id("p2"))
        try await stage.waitForStoppingRuns()
        await stage.queue.shutdown()
        return folder
    }
}
