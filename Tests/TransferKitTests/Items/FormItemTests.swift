import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Forms: items with several files that arrive together.
@Suite struct FormItemTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private func spooled() throws -> Int {
        let folder = fixture.folder.path.appending("store").appending("spool")
        return try FileManager.default.contentsOfDirectory(atPath: folder.string).count
    }

    private func form(_ data: String? = "data") throws -> TransferItem {
        .form(
            fields: ["title": "one", "id": "7", "title": "two"],
            files: try [.file(fixture.folder.file("a", size: 2_500)), .file(fixture.folder.file("b", size: 1_500), field: "other")]
                + (data.map { [.data(Data($0.utf8), name: "c")] } ?? []))
    }

    @Test func keepsFormAcrossRestart() async throws {
        var queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(.upload(items: [form()], to: "a"))
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(try spooled() == 1)
        try await queue.start()
        let status = try await queue.session(session.id).value
        #expect(status.statistics.files == 1 && status.statistics.bytesDone == 4_004)
        await queue.shutdown()
        #expect(try spooled() == 0)
        let received = try #require(fixture.memory.forms.first)
        #expect(fixture.memory.forms.count == 1 && received.path.description == "a")
        #expect(received.parts.map(\.field) == ["title", "id", "title", "file", "other", "file"])
        #expect(received.parts.map(\.name) == [nil, nil, nil, "a", "b", "c"])
        #expect(try received.parts.map(\.content).suffix(3) == [fixture.content("a"), fixture.content("b"), Data("data".utf8)])
    }

    /// A pause during the second file ends the request, and the next attempt begins with the first file.
    @Test func progressCountsBytesOfAllFiles() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("a", atByte: 3_000)
        let session = try await queue.enqueue(.upload(items: [form()], to: "a"))
        try await queue.start()
        try await gate.reached()
        let statistics = try await session.status.statistics
        #expect(statistics.bytesTotal == 4_004 && statistics.bytesSent == 3_000 && statistics.bytesDone == 0)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(item.formProgress(at: statistics.bytesSent) == [2_500, 500, 0])
        #expect(item.formProgress(at: 9_000) == [2_500, 1_500, 4] && item.formProgress(at: -1) == [0, 0, 0])
        try await session.pause()
        gate.open()
        await queue.waitUntilIdle()
        #expect(fixture.memory.forms.isEmpty)
        try await session.resume()
        #expect(try await session.value.statistics.bytesDone == 4_004)
        #expect(fixture.memory.attempts.map(\.bytesMoved).last == 4_004)
        await queue.shutdown()
    }

    @Test(arguments: [SymbolicLinkPolicy.skip, .follow])
    func followsFileThatBecomesLinkOnlyIfPolicyAllows(_ policy: SymbolicLinkPolicy) async throws {
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        try tree.file("parent/file", "content")
        try tree.file("other/file", "secret!")
        let queue = try await fixture.openWithAccounts()
        var item = TransferItem.form(files: [.file(tree.path("parent/file"))])
        item.symbolicLinks = policy
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try FileManager.default.removeItem(atPath: tree.path("parent").string)
        try tree.link("parent", to: tree.path("other").string)
        try await queue.start()
        _ = try? await session.value
        #expect(fixture.memory.forms.flatMap(\.parts).map(\.content) == (policy == .skip ? [] : [Data("secret!".utf8)]))
        await queue.shutdown()
    }

    @Test func deletesDataOfRemovedForms() async throws {
        let queue = try await fixture.openWithAccounts()
        let folder = TransferItem(fixture.folder.path.appending("store"))
        let sessions = try await queue.enqueue([
            .upload(items: [form("1"), folder, .form(files: [.data(Data("2".utf8), name: "2")])], to: "a"),
            .upload(items: [form(nil)], to: "b"),
        ])
        #expect(try spooled() == 2, "a form without data has no spool file")
        try await queue.apply(.remove(), to: .sessions(sessions.map(\.id)))
        #expect(try spooled() == 0)
        await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [form()], to: "missing")) }
        #expect(try spooled() == 0, "a rejected form leaves no data")
        await queue.shutdown()
    }

    /// The queue keeps data only until the form has arrived.
    @Test func reportsLostSourceOfFormWhoseDataIsGone() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(.upload(items: [form()], to: "a"))
        try await queue.start()
        _ = try await session.value
        try await queue.run(session.id, again: true)
        let error = try await #require(throws: TransferError.self) { try await session.value }
        #expect(error.failureClass == .sourceLost && !error.message.contains("spool"), "\(error.message)")
        await queue.shutdown()
    }

    /// After a lost response, the queue can't know that the form arrived.
    @Test func sendsFormAgainAfterLostResponse() async throws {
        fixture.memory.faults.append(.cut(afterBytes: 4_004))
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(.upload(items: [form()], to: "a"))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.forms.count == 2 && Set(fixture.memory.attempts.map(\.transferID)).count == 1)
        await queue.shutdown()
    }

    /// ``AttemptRecordingTransport`` does not conform to `FormUploading`.
    @Test func rejectsFormIfTransportSupportsNoForms() async throws {
        let queue = try await fixture.open(transports: [AttemptRecordingTransport(memory: fixture.memory, attempts: Locked([]))])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let error = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(items: [form()], to: "a")) }
        #expect(error.code == .invalidRequest && error.message.contains("can't send forms"))
        #expect(try spooled() == 0)
        await queue.shutdown()
    }

    @Test func rejectsUpdateAndEnqueueIfTransportSupportsNoForms() async throws {
        let memory = try await fixture.openWithAccounts()
        let held = try await memory.enqueue(.upload(items: [form()], to: "a"), held: true).id
        let draft = try await memory.save(draft: .upload(items: [form()], to: "a")).id
        await memory.shutdown()
        let queue = try await fixture.open(transports: [AttemptRecordingTransport(memory: fixture.memory, attempts: Locked([]))])
        let moved = await #expect(throws: QueueError.self) { try await queue.update(held, SessionUpdate(account: "b")) }
        let enqueued = await #expect(throws: QueueError.self) { try await queue.enqueue(draft: draft) }
        for error in [moved, enqueued] {
            #expect(error?.code == .invalidRequest && error?.message.contains("can't send forms") == true)
        }
        try await queue.update(held, SessionUpdate(tags: ["t"]))
        let status = try await queue.status(of: held)
        #expect(status.account == "a" && status.tags == ["t"])
        await queue.shutdown()
    }
}
