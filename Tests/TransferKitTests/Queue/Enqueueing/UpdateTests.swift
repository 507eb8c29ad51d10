import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct UpdateTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func changesAccountAndNameBeforeFirstByte() async throws {
        var queue = try await fixture.openWithAccounts()
        let events = queue.events
        let id = try await queue.enqueue(fixture.upload("1")).id
        try await queue.update(id, SessionUpdate(tags: ["t"], account: "b", name: "Day one"))
        let updated = await events.first { if case .updated(let id) = $0 { id } else { nil } }
        #expect(updated == id)
        await queue.shutdown()

        queue = try await fixture.open()
        let status = try await queue.status(of: id)
        #expect((status.account, status.name, status.tags) == ("b", "Day one", ["t"]))
        #expect(try await queue.sessions(in: .account("b")).map(\.id) == [id])
        await #expect(throws: QueueError.self) { try await queue.deleteAccount("b") }
        try await queue.deleteAccount("a")
        try await queue.start()
        _ = try await queue.session(id).value
        #expect(fixture.memory.attempts.map(\.endpoint.address) == [fixture.memory.endpoint(host: "b").address])
        await queue.shutdown()
    }

    @Test func changesAccountOfBlockedSession() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.credentials, .credentialsRejected, "No."))
        let session = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        let blocked = try await session.status
        #expect(blocked.why == .accountBlocked(TransferError(.credentials, .credentialsRejected, "No.")))
        #expect(blocked.endpoint != nil)
        try await session.hold()
        try await session.update(SessionUpdate(account: "b"))
        #expect(try await session.status.endpoint == nil)
        try await session.release()
        #expect(try await session.value.account == "b")
        await queue.shutdown()
    }

    @Test func oldRetryDelayDoesNotApplyToNewAccount() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.refuse(host: "a")
        let session = try await queue.enqueue(fixture.upload("1", options: SessionOptions(retry: RetryPolicy(base: .seconds(60)))))
        let events = queue.events
        try await queue.start()
        _ = await events.first { if case .changed([session.id], .waiting) = $0 { true } else { nil } }
        try await session.update(SessionUpdate(account: "b"))
        #expect(try await session.value.account == "b")
        await queue.shutdown()
    }

    /// Once content was transferred, the account and the options that determine how files arrive are fixed.
    @Test func keepsAccountAfterFirstByte() async throws {
        var queue = try await fixture.openWithAccounts()
        let id = try await queue.enqueue(fixture.upload("1")).id
        let gate = fixture.memory.gate("1", atByte: 5_000)
        try await queue.start()
        try await gate.reached()
        let changes = [
            SessionUpdate(account: "b"), SessionUpdate(metadata: ["a": "b"]), SessionUpdate(overwrite: .always),
            SessionUpdate(settings: ["a": "b"]), SessionUpdate(creationURL: .set("https://example.com/")),
            SessionUpdate(creationURL: .remove),
        ]
        let starts = [SessionUpdate(notBefore: .set(.distantFuture)), SessionUpdate(dependency: .remove)]
        func expectRefusals(_ updates: [SessionUpdate], _ reason: String) async throws {
            for update in updates {
                let error = try await #require(throws: QueueError.self) { try await queue.update(id, update) }
                #expect(error.code == .invalidTransition && error.message.contains(reason), "\(error.message)")
            }
        }
        try await expectRefusals(changes, "has transferred content")
        try await expectRefusals(starts, "is running")
        await queue.shutdown()

        queue = try await fixture.open()
        try await expectRefusals(changes, "has transferred content")
        try await queue.update(id, SessionUpdate(retry: RetryPolicy(maximumAttempts: 2), name: "again"))
        try await queue.update(id, starts[0])
        #expect(try await queue.status(of: id).account == "a")
        #expect(try await queue.status(of: id).name == "again")
        await queue.shutdown()
    }

    @Test func changesOptions() async throws {
        let transport = AttemptRecordingTransport(memory: fixture.memory, attempts: Locked([]))
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let options = SessionOptions(metadata: ["old": "1"], chunkSize: 5_000, segmentsPerFile: 2)
        let session = try await queue.enqueue(fixture.upload("1", options: options))
        var update = SessionUpdate(metadata: ["new": "2"], overwrite: .rename, settings: ["s": "capability-4711"])
        update.chunkSize = .set(7_000)
        update.headers = ["X-Day": "1"]
        update.creation = .separate
        update.reportsItemProgress = true
        update.creationURL = .set("https://example.com/4711")
        #expect(update.creationURL == .set("https://example.com/4711"))
        #expect(!"\(update)".contains("4711"))
        try await session.update(update)
        try await session.update(SessionUpdate(retry: RetryPolicy(maximumAttempts: 3)))
        let events = queue.events
        try await queue.start()
        _ = try await session.value
        for await event in events {
            if case .itemStarted = event.kind { break }
            guard case .completed = event.kind else { continue }
            Issue.record("The session reports no items.")
            break
        }
        let recorded = try #require(transport.attempts.withLock { $0.first?.options })
        #expect(recorded.metadata == ["new": "2"] && recorded.headers == ["X-Day": "1"] && recorded.settings == ["s": "capability-4711"])
        #expect(recorded.creationURL == "https://example.com/4711")
        #expect(recorded.overwrite == .rename && recorded.creation == .separate)
        #expect(recorded.chunkSize == 7_000 && recorded.segmentsPerFile == 2)
        await queue.shutdown()
    }

    @Test func rejectsInvalidValues() async throws {
        let queue = try await fixture.openWithAccounts()
        let id = try await queue.enqueue(fixture.upload("1")).id
        var updates = [
            SessionUpdate(notBefore: .set(Date(timeIntervalSince1970: .infinity))),
            SessionUpdate(notBefore: .set(.init(timeIntervalSince1970: 1e300))),
        ]
        for change in [
            { $0.chunkSize = .set(0) }, { $0.filesInFlight = .set(65) }, { $0.segmentsPerFile = 0 }, { $0.stallTimeout = .zero },
            { $0.deadline = .set(.zero) }, { $0.headers = ["Cookie": "x"] }, { $0.expectedChecksum = .set("x") },
            { $0.expectedChecksum = .set("md5:" + String(repeating: "0", count: 32)) },
        ] as [(inout SessionUpdate) -> Void] {
            var update = SessionUpdate(name: "changed")
            change(&update)
            updates.append(update)
        }
        for update in updates {
            let error = try await #require(throws: QueueError.self) { try await queue.update(id, update) }
            #expect(error.code == .invalidRequest, "\(update)")
        }
        #expect(try await queue.status(of: id).name == "1")
        await queue.shutdown()
    }

    @Test func waitsForNewStartTime() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(fixture.upload("1"))
        let later = fixture.clock.engineClock.date().addingTimeInterval(3_600)
        try await session.update(SessionUpdate(notBefore: .set(later)))
        try await queue.start()
        #expect(try await session.status.why == .notBefore(later))
        try await session.update(SessionUpdate(notBefore: .remove))
        _ = try await session.value
        await queue.shutdown()
    }

    @Test func changesDependencyAndRejectsCycle() async throws {
        var queue = try await fixture.openWithAccounts()
        let ids = try await queue.enqueue([fixture.upload("1"), fixture.upload("2"), fixture.upload("3")]).map(\.id)
        try await queue.update(ids[0], SessionUpdate(dependency: .set(.after(ids[1]))))
        try await queue.update(ids[1], SessionUpdate(dependency: .set(.afterAny(ids[2]))))
        for id in ids {
            let error = try await #require(throws: QueueError.self) {
                try await queue.update(ids[2], SessionUpdate(name: "changed", dependency: .set(.after(id))))
            }
            #expect(error.code == .impossibleOrder)
        }
        let missing = SessionUpdate(name: "changed", dependency: .set(.after(SessionID())))
        let error = try await #require(throws: QueueError.self) { try await queue.apply(.update(missing), to: .all) }
        #expect(error.code == .noSuchSession)
        #expect(try await queue.sessions().map(\.name) == ["1", "2", "3"])
        await queue.shutdown()

        queue = try await fixture.open()
        try await queue.start()
        for id in ids { _ = try await queue.session(id).value }
        #expect(fixture.memory.attempts.map { "\($0.path)" } == ["3", "2", "1"])
        await queue.shutdown()
    }

    /// The update skips only sessions that have begun.
    @Test func changesAccountOfGroup() async throws {
        let queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        _ = try await first.value
        try await queue.stopAndWait()
        let ids = try await queue.enqueue([fixture.upload("2"), fixture.upload("3")]).map(\.id)
        #expect(try await queue.apply(.update(SessionUpdate(account: "b")), to: .account("a")) == ids)
        let error = try await #require(throws: QueueError.self) {
            try await queue.apply(.update(SessionUpdate(account: "missing")), to: .all)
        }
        #expect(error.code == .noSuchAccount)
        await queue.shutdown()
    }

    /// The failed session could not be performed after the update.
    @Test func groupUpdateSkipsFailedSessions() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."))
        let first = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await first.value }
        try await queue.stopAndWait()
        let second = try await queue.enqueue(.download([try RemotePath("x")], from: "a", to: fixture.folder.path))
        var update = SessionUpdate()
        update.expectedChecksum = .set("sha256:" + String(repeating: "0", count: 64))
        #expect(try await queue.apply(.update(update), to: .sessions([first.id, second.id])) == [second.id])
        #expect(try await queue.apply(.update(update), to: .account("a")) == [second.id])
        await queue.shutdown()
    }

    @Test func replacesItemsThatHaveNotBegun() async throws {
        var queue = try await fixture.openWithAccounts()
        let inner = fixture.folder.path.appending("folder").string
        try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
        _ = try fixture.folder.file("folder/inner", size: 10)
        let items = try [
            TransferItem(fixture.folder.file("1", size: 10)), .data(Data("x".utf8), as: RemotePath("blob")),
            TransferItem(fixture.folder.path.appending("folder")), TransferItem(fixture.folder.file("2", size: 20)),
        ]
        let id = try await queue.enqueue(.upload(items: items, to: "a")).id
        func names() async throws -> [String] { try await queue.items(of: id).map { "\($0.destination)" } }
        try await queue.replaceItems(.at([1, 3]), with: [TransferItem(fixture.folder.file("3", size: 30))], in: .id(id))
        #expect(try await names() == ["1", "folder", "3"])
        let spool = fixture.folder.path.appending("store").appending("spool").string
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool) == [])
        let statistics = try await queue.status(of: id).statistics
        #expect(statistics.files == 3 && statistics.bytesTotal == 40)
        #expect(try await queue.statistics().bytesTotal == 40)
        for (selection, code) in [
            (ItemSelection.at([0, 9]), QueueError.Code.invalidTransition), (.at([-1]), .invalidRequest), (.at([0, 1, 2]), .invalidRequest),
            (.all, .invalidRequest),
        ] {
            let error = await #expect(throws: QueueError.self) { try await queue.replaceItems(selection, with: [], in: .id(id)) }
            #expect(error?.code == code, "\(selection)")
        }
        #expect(try await names() == ["1", "folder", "3"])
        try await queue.replaceItems(.all, with: [TransferItem(fixture.folder.file("4", size: 40))], in: .id(id))
        await queue.shutdown()

        queue = try await fixture.open()
        #expect(try await names() == ["4"])
        try await queue.start()
        #expect(try await queue.session(id).value.statistics.bytesDone == 40)
        await queue.shutdown()
    }

    /// Items that have not begun can be removed, but only while the session is not running.
    @Test func keepsItemsThatHaveBegun() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(fixture.upload("1", "2", "3", options: SessionOptions(filesInFlight: 1)))
        let gate = fixture.memory.gate("2", atByte: 5_000)
        try await queue.start()
        try await gate.reached()
        func expectRefusal(_ selection: ItemSelection) async {
            let error = await #expect(throws: QueueError.self) { try await session.replaceItems(selection, with: []) }
            #expect(error?.code == .invalidTransition, "\(selection)")
        }
        await expectRefusal(.at([2]))
        try await queue.stopAndWait()
        for selection in [ItemSelection.at([0]), .at([1]), .at([1, 2])] { await expectRefusal(selection) }
        try await session.replaceItems(.at([2]), with: [])
        let error = await #expect(throws: QueueError.self) {
            try await session.replaceItems(.all, with: [TransferItem(fixture.folder.file("4", size: 1))])
        }
        #expect(error?.code == .invalidTransition)
        gate.open()
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 2)
        #expect(fixture.memory.completePaths.map { "\($0)" }.sorted() == ["1", "2"])
        await queue.shutdown()
    }

    @Test func changedOptionsApplyToRetry() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."))
        let session = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        var update = SessionUpdate(name: "second try")
        update.headers = ["X-Day": "2"]
        update.deadline = .set(.seconds(100))
        try await session.update(update)
        await #expect { try await session.update(SessionUpdate(account: "b")) } throws: {
            ($0 as? QueueError)?.code == .invalidTransition && "\($0)".contains("Retry it")
        }
        let gate = fixture.memory.gate("1", atByte: 5_000)
        try await session.retry()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(100))
        gate.open()
        let end = try await session.value
        #expect(end.state == .completed && end.name == "second try")
        await #expect(throws: QueueError.self) { try await session.update(update) }
        await queue.shutdown()
    }
}
