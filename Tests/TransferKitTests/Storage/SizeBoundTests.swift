import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The sums of very large sizes must neither crash the process nor count as damage to the database.
@Suite struct SizeBoundTests {
    private static let sizes: [Int64] = [0, 1 << 31, 1 << 32, (1 << 56) - 1, 1 << 56, 1 << 60, .max]

    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var storage: FilePath { fixture.folder.path.appending("store") }

    private func draft(_ count: Int, _ size: Int64) -> SessionDraft {
        var draft = SessionDraft.draft()
        draft.items = (0..<count).map { ItemDraft(source: Data("/f\($0)".utf8), destination: Data("\($0)".utf8), size: size) }
        return draft
    }

    @Test(arguments: sizes, [1, 17, 200]) func storedSizesNeverExceedBound(_ size: Int64, _ count: Int) async throws {
        let store = try await QueueStore.open(.folder(storage), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a"))])
        let sessions = (1...70).map { StoreWrite.session(SessionKey($0), rank: Int64($0), draft(count, size)) }
        try await store.commit(sessions)
        let folder = ItemDraft(kind: .folder, source: Data("/d".utf8), destination: Data("d".utf8), size: 0)
        try await store.commit([
            .addItems(1, draft(count, size).items), .addItems(1, [folder]), .addItems(1, draft(count, size).items),
            .file(2, position: 0, .size(size)),
            .file(3, position: 0, .completed(TransferReceipt(bytes: size), endpoint: Account.memory("a").endpoints[0])),
            .file(
                4, position: 0,
                .checkpoint(
                    Checkpoint(data: Data(), confirmed: size), endpoint: Account.memory("a").endpoints[0], generation: 1, nil)),
            .expansion(1, .finish(item: 0, ManifestTotals(files: 1, bytes: size))),
        ])
        await store.close()
        let queue = try await fixture.open()
        let statuses = try await queue.sessions()
        #expect(statuses.count == 70)
        for status in statuses {
            #expect((0...FileSize.sessionMaximum).contains(status.statistics.bytesKnown))
            #expect(try await queue.items(of: status.id).allSatisfy { (0...FileSize.maximum).contains($0.bytesTotal ?? 0) })
        }
        let statistics = try await queue.statistics()
        #expect(statistics.bytesTotal >= statuses[9].statistics.bytesKnown)
        try await queue.apply(.remove(isForced: true), to: .all)
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    /// An earlier version could store sums above the bound.
    @Test func showsMaximumSizeForLargerSessions() async throws {
        let store = try await QueueStore.open(.folder(storage), clock: .system)
        try await store.commit(
            [.saveAccount(1, .memory("a"))] + (1...70).map { .session(SessionKey($0), rank: Int64($0), draft(17, 1 << 56)) })
        try await store.pool.write {
            try $0.execute(sql: "UPDATE session SET bytes_total = 17 << 56; UPDATE total SET bytes_total = 1190 << 53")
        }
        await store.close()
        let queue = try await fixture.open()
        #expect(try await queue.sessions().allSatisfy { $0.statistics.bytesTotal == 1 << 60 })
        #expect(await queue.sessionIDs().count == 70)
        _ = try await queue.statistics()
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    /// The sums of the running sessions' statistics exceed the largest integer.
    @Test func addsLargestFiguresOfRunningSessions() async throws {
        let names = (0..<20).map { "\($0)" }
        let first = try await fixture.openWithAccounts()
        try await first.setMaxConcurrentSessions(names.count)
        for name in names { try await first.enqueue(try fixture.upload(name)) }
        await first.shutdown()
        let database = try DatabaseQueue(path: storage.appending("queue.sqlite").string)
        try await database.write {
            try $0.execute(
                sql: """
                    UPDATE session SET bytes_total = 1 << 60, bytes_done = 1 << 60;
                    UPDATE total SET bytes_total = 9223372036854775807, bytes_done = -9223372036854775808;
                    INSERT OR REPLACE INTO setting(name, value) VALUES ('bytesConfirmed', 9223372036854775807)
                    """)
        }
        try database.close()
        let gates = names.map { fixture.memory.gate($0, atByte: 5_000) }
        let queue = try await fixture.open()
        try await queue.start()
        for gate in gates { try await gate.reached() }
        let statistics = try await queue.statistics()
        #expect(statistics.bytesDone >= 0 && statistics.bytesSent >= statistics.bytesDone && statistics.bytesRemaining >= 0)
        #expect(try await queue.store.totals(leavingOut: []).bytesConfirmed == FileSize.sessionMaximum)
        gates.forEach { $0.open() }
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().allSatisfy { $0.state == .completed })
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    /// New files get the positions after the last file. No position follows the largest integer, so the queue must reject a file at this
    /// position.
    @Test func rejectsLargestPosition() async throws {
        let store = try await QueueStore.open(.folder(storage), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft(2, 1))])
        try await store.pool.write {
            try $0.execute(sql: "UPDATE file SET position = 9223372036854775807 WHERE position = 1")
        }
        await #expect(throws: QueueError.self) { _ = try await store.page(of: 1, after: -1, limit: 9) }
        await #expect(throws: QueueError.self) { try await store.commit([.addItems(1, draft(2, 1).items)]) }
        _ = try? await store.items(of: 1, from: 0, limit: .max)
        _ = try? await store.items(of: 1, from: .max, limit: -1)
        try await store.commit([.deleteSession(1)])
        await store.close()
    }

    @Test(arguments: sizes, [1, 17, 200]) func rejectsLargeStreamLengthsWithMessage(_ size: Int64, _ count: Int) async throws {
        let queue = try await fixture.openWithAccounts()
        let items = try (0..<count).map { number in
            TransferItem.stream(AsyncStream<Data> { $0.finish() }, as: try RemotePath("\(number)"), length: size)
        }
        let session: TransferSession?
        do {
            session = try await queue.enqueue(.upload(items: items, to: "a"), held: true)
            #expect(size <= FileSize.maximum && Int64(count) <= FileSize.sessionMaximum / max(size, 1))
        } catch let error as QueueError {
            session = nil
            #expect(error.code == .unreadableItems && error.message.contains("iB"), "\(error.message)")
            #expect(size > FileSize.maximum || Int64(count) > FileSize.sessionMaximum / max(size, 1))
        }
        if let session { #expect(try await session.status.statistics.bytesTotal == size * Int64(count)) }
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    /// A transport that reports each file as complete, with `size` bytes.
    private struct ClaimingTransport: Transport {
        let id = TransportID(rawValue: "memory")
        let size: Int64

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            reporter.report(total: size)
            reporter.report(sent: size, confirmed: size)
            try await reporter.save(Checkpoint(data: Data("x".utf8), confirmed: size))
            return TransferReceipt(bytes: size)
        }

        func shutdown() async {}
    }

    @Test(arguments: OverwritePolicy.allCases, [TransferDirection.upload, .download])
    func falseClaimsOfTransportsDoNotDamageDatabase(_ policy: OverwritePolicy, _ direction: TransferDirection) async throws {
        // A false receipt of an upload counts as a failure of the endpoint. After five failures, the queue does not use the endpoint for
        // some time, so more files would test nothing new.
        for count in direction == .upload ? [1, 17] : [1, 17, 200] {
            for size in Self.sizes {
                let fixture = try QueueFixture()
                let queue = try await fixture.open(transports: [ClaimingTransport(size: size)])
                try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
                let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 1), overwrite: policy)
                let request: SessionRequest
                if direction == .upload {
                    let files = try (0..<count).map { try fixture.folder.file("\($0)", size: 3) }
                    request = try .upload(files, to: "a", options: options)
                } else {
                    let names = try (0..<count).map { try RemotePath("\($0)") }
                    request = try .download(names, from: "a", to: fixture.folder.path, options: options)
                }
                let session = try await queue.enqueue(request)
                try await queue.start()
                await queue.waitUntilIdle(scheduled: false)
                while let due = await queue.status().nextDue {
                    let wait = Duration.seconds(due.timeIntervalSince(fixture.clock.engineClock.date()))
                    fixture.clock.advance(by: max(wait, .milliseconds(1)))
                    await queue.waitUntilIdle(scheduled: false)
                }
                let status = try await session.status
                #expect(status.state == .completed || status.error?.message.isEmpty == false)
                #expect(try await queue.quarantined().isEmpty)
                await queue.shutdown()
            }
        }
    }
}
