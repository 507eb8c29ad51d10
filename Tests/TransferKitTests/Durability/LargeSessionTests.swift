import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Sessions with more rows of one kind than one transaction changes.
@Suite struct LargeSessionTests {
    /// The maximum number of rows that one transaction deletes or moves. With the product's limit of 10,000 rows, the suite takes minutes.
    private static let limit =
        ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all" ? QueueStore.maximumRowsPerSweep : 1_000
    private static let count = limit + 1

    /// The kind of row that the large session has very many of.
    enum Content: String, CaseIterable, Sendable {
        case files, failedFiles, blobs, sentBlobs, streams, forms, downloads, unreadFolders, folders, nestedFolders
        case waitingFiles, waitingFolders, waitingBlobs, waitingStreams, waitingForms, waitingDownloads, waitingRemoteFolders
        case checkpoints, tags

        fileprivate var isDownload: Bool { [.downloads, .waitingDownloads, .waitingRemoteFolders].contains(self) }

        fileprivate var hasFiles: Bool { rows.contains("INSERT INTO file(") }
        /// Whether the session has very many items that no run has expanded into files yet.
        fileprivate var isWaiting: Bool { rows.contains("INSERT INTO item(") }

        fileprivate var rows: String {
            switch self {
            case .files: file("file")
            case .failedFiles: file("file", "failed")
            case .blobs: file("blob")
            case .sentBlobs: file("blob", "completed")
            case .streams: file("stream")
            case .forms: file("form")
            case .downloads: file("download")
            case .unreadFolders: file("folder", "failed")
            case .folders: "INSERT INTO directory(session, number, source, destination) SELECT 1, n, 'f' || n, 'f' || n FROM numbers"
            case .nestedFolders:
                """
                INSERT INTO directory(session, number, parent, source, destination)
                SELECT 1, n, CASE WHEN n > 0 THEN n / 2 END, 'f' || n, 'f' || n FROM numbers
                """
            case .waitingFiles: item("file")
            case .waitingFolders: item("folder")
            case .waitingBlobs: item("blob")
            case .waitingStreams: item("stream")
            case .waitingForms: item("form")
            case .waitingDownloads: item("download")
            case .waitingRemoteFolders: item("remoteFolder")
            case .checkpoints:
                """
                INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                SELECT 1, 0, 'memory://a/' || n, 1, x'00', 1, 'null' FROM numbers
                """
            case .tags: "INSERT INTO session_tag(tag, session) SELECT 'tag ' || n, 1 FROM numbers"
            }
        }

        private func file(_ kind: String, _ state: String = "pending") -> String {
            """
            INSERT INTO file(session, position, kind, source, destination, state, size)
            SELECT 1, n + 1, '\(kind)', 'f' || n, 'f' || n, '\(state)', 1 FROM numbers
            """
        }

        private func item(_ kind: String) -> String {
            """
            INSERT INTO item(session, sequence, kind, source, destination, size, symbolic_links)
            SELECT 1, n, '\(kind)', 'f' || n, 'f' || n, 1, 'skip' FROM numbers
            """
        }
    }

    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var database: FilePath { fixture.folder.path.appending("store").appending("queue.sqlite") }

    private func open(retention: Retention = .keepAll) async throws -> TransferQueue {
        try await fixture.open(retention: retention, rowsPerSweep: Self.limit)
    }

    /// Executes SQL statements in the database while no queue has the database open.
    private func change(_ sql: String...) throws {
        let queue = try DatabaseQueue(path: database.string)
        try queue.write { db in
            for sql in sql { try db.execute(sql: sql) }
        }
        try queue.close()
    }

    /// Creates a small session and a large session (key 1) with very many rows of one kind, and then commits `write`.
    private func prepare(_ content: Content, _ write: StoreWrite) async throws {
        var store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system, rowsPerSweep: Self.limit)
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, .draft()), .session(2, rank: 1, .draft()),
        ])
        await store.close()
        // The database stores names as BLOBs.
        let rows = content.rows.replacingOccurrences(of: "'f' || n", with: "CAST('f' || n AS BLOB)")
        try change(
            """
            CREATE TABLE numbers AS WITH RECURSIVE all_numbers(n) AS (
                SELECT 0 UNION ALL SELECT n + 1 FROM all_numbers WHERE n + 1 < \(Self.count)
            ) SELECT n FROM all_numbers
            """, rows, "DROP TABLE numbers")
        if content.isDownload { try change("UPDATE session SET direction = 'download', folder = CAST('/to' AS BLOB) WHERE key = 1") }
        store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system, rowsPerSweep: Self.limit)
        try await store.commit([write])
        await store.close()
    }

    private func count(_ table: String) throws -> Int {
        try StoreInspection(fixture.folder.path.appending("store")).count(table) ?? -1
    }

    @Test(arguments: Content.allCases) func deletesRemainingRowsOfRemovedSessionAfterOpening(_ content: Content) async throws {
        try await prepare(content, .deleteSession(1))
        let queue = try await open()
        await queue.deferredDeletion.waitUntilDone()
        #expect(try await queue.sessions().map(\.name) == ["test"])
        for table in ["removal", "checkpoint", "directory", "item", "session_tag", "quarantine"] {
            #expect(try count(table) == 0, "\(table)")
        }
        for table in ["schedule", "session", "file"] { #expect(try count(table) == 1, "\(table)") }
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
    }

    @Test(arguments: Content.allCases) func quarantineKeepsAllRows(_ content: Content) async throws {
        try await prepare(content, .quarantine(1, "for a test"))
        let queue = try await open()
        await queue.deferredDeletion.waitUntilDone()
        #expect(try await queue.sessions().count == 1)
        #expect(try count("removal") == 0)
        #expect(try count("quarantined_row") == Self.count + 1, "the inserted rows, plus the row of the session's own file")
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
    }

    @Test(arguments: Content.allCases) func showsAndRemovesLargeSession(_ content: Content) async throws {
        try await prepare(content, .settings(QueueSettings()))
        let queue = try await open(retention: .count(0))
        let ids = await queue.sessionIDs()
        #expect(try await queue.sessions().count == 2)
        _ = try await queue.items(of: ids[0])
        _ = try await queue.statistics()
        try await queue.apply(.remove(), to: .all)
        await queue.deferredDeletion.waitUntilDone()
        for table in ["schedule", "session", "file", "removal", "checkpoint", "directory", "item", "session_tag", "quarantine"] {
            #expect(try count(table) == 0, "\(table)")
        }
        await queue.shutdown()
    }

    @Test func expandsAndUploadsLargeFolderAndExpiresSession() async throws {
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        try tree.folder("deep/er")
        for number in 0..<Self.count { try tree.file("deep/er/\(number)") }
        let queue = try await open(retention: .count(0))
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.enqueue(.upload([tree.root], to: "a"))
        try await queue.start()
        await queue.waitUntilIdle()
        await queue.deferredDeletion.waitUntilDone()
        #expect(fixture.memory.completePaths.count == Self.count)
        for table in ["schedule", "session", "file", "removal", "directory", "item"] { #expect(try count(table) == 0, "\(table)") }
        await queue.shutdown()
    }

    @Test(arguments: Content.allCases) func expiresLargeSession(_ content: Content) async throws {
        try await prepare(content, .settings(QueueSettings()))
        try change("UPDATE schedule SET state = 'completed', completed_at = 1 WHERE session = 1")
        let queue = try await open(retention: .count(0))
        while await queue.sessionIDs().count > 1 { await Task.yield() }
        await queue.deferredDeletion.waitUntilDone()
        for table in ["removal", "checkpoint", "directory", "item", "session_tag", "quarantine"] {
            #expect(try count(table) == 0, "\(table)")
        }
        for table in ["schedule", "session", "file"] { #expect(try count(table) == 1, "\(table)") }
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
    }

    @Test(arguments: [Content.files, .blobs, .downloads, .waitingFolders]) func removesLargeDraft(_ content: Content) async throws {
        try await prepare(content, .settings(QueueSettings()))
        try change("UPDATE schedule SET state = 'draft' WHERE session = 1")
        let queue = try await open()
        let draft = try #require(try await queue.sessions(in: .state(.draft)).first)
        #expect(await queue.sessionIDs().count == 1)
        try await queue.remove(draft.id)
        await queue.deferredDeletion.waitUntilDone()
        for table in ["removal", "checkpoint", "directory", "item", "session_tag", "quarantine"] {
            #expect(try count(table) == 0, "\(table)")
        }
        await queue.shutdown()
    }

    /// The items have no content, so all files fail.
    @Test(arguments: Content.allCases.filter(\.isWaiting)) func expandsLargeSession(_ content: Content) async throws {
        try await prepare(content, .settings(QueueSettings()))
        let queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try count("item") == 0 && count("file") == Self.count + 2)
        #expect(try await queue.sessions().allSatisfy { $0.state == .failed })
        #expect(try count("quarantine") == 0)
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
    }

    /// Pending removals of all kinds are alike, so only the tests with files and downloads wait until the queue has performed the removals.
    @Test(arguments: Content.allCases.filter(\.hasFiles)) func removesUnfinishedContentOfManyFiles(_ content: Content) async throws {
        try await prepare(content, .settings(QueueSettings()))
        try change(
            """
            INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
            SELECT session, position, 'memory://a/', 1, x'00', 1, 'null' FROM file
            """)
        let queue = try await open()
        try await queue.apply(.remove(), to: .all)
        #expect(await queue.sessionIDs().isEmpty)
        await queue.deferredDeletion.waitUntilDone()
        for table in ["schedule", "session", "file", "removal", "checkpoint"] { #expect(try count(table) == 0, "\(table)") }
        if content == .files || content == .downloads {
            try await queue.start()
            await queue.waitUntilIdle()
            #expect(try count("discard") == 0)
        } else {
            #expect(try count("discard") == Self.count + 2)
        }
        await queue.shutdown()
    }
}
