import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct DamagedTableTests {
    private static let pageSize = 4_096

    /// The damaged page contains the rows for the files of the last sessions.
    private static let names = (0..<40).map { "w\($0)" }

    @Test(.timeLimit(.minutes(10))) func sessionsWithUnreadableFilesWait() async throws {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.save(stage.account("a"))
        _ = try await stage.queue.enqueue(
            Self.names.map { name in try stage.request(name, (0..<10).map { try stage.item("\(name)-\($0)", size: 10) }) })
        await stage.queue.shutdown()
        try overwriteLastLeaf(of: "file", in: folder.path)

        let damaged = try await Stage(folder.path, usesTestClock: false)
        let events = damaged.queue.events
        try await damaged.queue.start()
        for await event in events {
            guard case .storageFailed(let error) = event.kind else { continue }
            #expect(error.code == .storageDamaged)
            break
        }
        // The queue counts as idle although it retries the sessions, because only the user can repair the database.
        await damaged.queue.waitUntilIdle()
        try await damaged.wait { sessions in sessions.allSatisfy { $0.state == .completed || $0.error?.code.rawValue == "storageDamaged" } }
        let sessions = try await damaged.queue.sessions()
        #expect(sessions.first?.state == .completed && sessions.last?.state == .waiting)
        // One session can have rows both in the damaged page and in the page before it. If SQLite must move this session's rows between the pages,
        // the change fails, and the queue quarantines the session.
        let missing = Self.names.filter { name in !sessions.contains { $0.name == name } }
        #expect(missing.count <= 1)
        #expect(try await damaged.queue.quarantined().count == missing.count)
        let completed = sessions.count { $0.state == .completed }
        for name in missing {
            let index = try #require(Self.names.firstIndex(of: name))
            #expect(index <= completed)
        }
        await damaged.queue.shutdown()
    }

    @Test func damagedIndexOfFailedFilesQuarantinesNoSession() async throws {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.save(stage.account("a"))
        _ = try await stage.queue.enqueue(["w1", "w2"].map { try stage.upload($0) })
        for name in ["w1", "w2"] { try FileManager.default.removeItem(atPath: folder.path.appending("file-\(name)").string) }
        try await stage.queue.start()
        try await stage.wait { sessions in sessions.allSatisfy { $0.state == .failed && $0.failedItem != nil } }
        await stage.queue.shutdown()
        try overwriteLastLeaf(of: "file_failed", in: folder.path)

        let damaged = try await Stage(folder.path, usesTestClock: false)
        let sessions = try await damaged.queue.sessions()
        #expect(sessions.map(\.name) == ["w1", "w2"])
        #expect(sessions.map(\.state) == [.failed, .failed])
        #expect(sessions.map(\.error?.failureClass) == [.sourceLost, .sourceLost])
        #expect(sessions.map(\.failedItem) == [nil, nil])
        await damaged.queue.waitUntilIdle()
        #expect(try await damaged.queue.quarantined().isEmpty)
        await damaged.queue.shutdown()
    }

    @Test(arguments: ["session_tag_session", "file_unsized", "item_unsized"])
    func toleratesDamagedTagsAndSizes(_ index: String) async throws {
        let folder = try await preparedDatabase(sessions: 200)
        try overwriteLeaves(of: index, in: folder.path) { $0[...] }
        let damaged = try await Stage(folder.path, usesTestClock: false)
        #expect(try await damaged.queue.sessions().count == 200)
        #expect(try await damaged.queue.quarantined().isEmpty)
        await damaged.queue.shutdown()
    }

    /// The queue quarantines at most 64 sessions within ten minutes.
    @Test(.timeLimit(.minutes(10))) func omitsUnreadableSessionsAndQuarantinesSome() async throws {
        let folder = try await preparedDatabase(sessions: 400)
        // The last page stays intact, because the queue needs the last session to find the next free key.
        try overwriteLeaves(of: "session", in: folder.path) { $0.dropFirst().dropLast() }
        // With the machine's clock, a slow test could take more than a minute, and then the queue would report the damage again.
        let damaged = try await Stage(folder.path)
        let events = damaged.queue.events
        let listed = try await damaged.queue.sessions().map(\.name)
        #expect(listed.count < 300 && listed.first == "s0" && listed.last == "s399")
        // Each change of the rate limit sends an event. The loop below reads the events up to the second change.
        try await damaged.queue.setRateLimit(1_000_000)
        #expect(await damaged.queue.sessionIDs().count == 400 - 64)
        #expect(try await damaged.queue.sessions().count == listed.count)
        try await damaged.queue.setRateLimit(nil)
        var codes: [QueueError.Code] = []
        var limits = 0
        for await event in events {
            if case .storageFailed(let error) = event.kind { codes.append(error.code) }
            if case .limitsChanged = event.kind { limits += 1 }
            if limits == 2 { break }
        }
        #expect(
            codes == [.storageDamaged],
            "the queue reports the damage only once, however many sessions are unreadable, and however often it reads them")
        await damaged.queue.shutdown()
    }

    private static func sessionNames(_ count: Int) -> [String] { (0..<count).map { "s\($0)" } }

    private func preparedDatabase(sessions count: Int) async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.save(stage.account("a"))
        _ = try await stage.queue.enqueue(
            Self.sessionNames(count).map { name in
                var request = try stage.request(name, [.data(Data([1]), as: RemotePath(name))])
                request.tags = ["a tag of the session \(name)"]
                return request
            })
        await stage.queue.shutdown()
        return folder
    }

    private func overwriteLastLeaf(of name: String, in root: FilePath) throws {
        try overwriteLeaves(of: name, in: root) { $0.suffix(1) }
    }

    private func overwriteLeaves(of name: String, in root: FilePath, select: ([Int]) -> ArraySlice<Int>) throws {
        let path = root.appending("store").appending("queue.sqlite").string
        let database = try DatabaseQueue(path: path)
        let pages = try database.read {
            try Int.fetchAll(
                $0, sql: "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", arguments: [name])
        }
        try database.close()
        var content = try Data(contentsOf: URL(fileURLWithPath: path))
        for page in select(pages) {
            let start = (page - 1) * Self.pageSize
            for index in start..<start + Self.pageSize { content[index] = 0xA5 }
        }
        try content.write(to: URL(fileURLWithPath: path))
    }
}
