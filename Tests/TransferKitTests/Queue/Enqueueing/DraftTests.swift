import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Drafts: stored sessions that are not in the queue's order yet.
@Suite struct DraftTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func survivesRestartAndNeverRuns() async throws {
        var queue = try await fixture.openWithAccounts()
        let events = queue.events
        let draft = try await queue.save(draft: fixture.upload("1"))
        #expect(await events.first { if case .changed(let ids, .draft) = $0 { ids } else { nil } } == [draft.id])
        let other = try await queue.enqueue(fixture.upload("2"))
        let revision = await queue.status().orderRevision
        await queue.shutdown()

        queue = try await fixture.open()
        try await queue.start()
        _ = try await queue.session(other.id).value
        await queue.waitUntilIdle()
        #expect(fixture.memory.attempts.map { "\($0.path)" } == ["2"])
        let status = try await queue.status(of: draft.id)
        #expect(status.state == .draft && status.index == -1 && status.why == nil)
        #expect(try await queue.sessions(in: .state(.draft)).map(\.id) == [draft.id])
        #expect(await queue.sessionIDs() == [other.id])
        #expect(try await queue.sessions().map(\.id) == [other.id])
        #expect(try await queue.sessions(in: .account("a")).map(\.id) == [other.id])
        #expect(await queue.sessionIDs(beginningWith: String(draft.id.description.prefix(12)), limit: 2) == [draft.id])
        let counts = await queue.status()
        #expect(counts.sessions == 1 && counts.drafts == 1 && counts.orderRevision == revision)
        #expect(try await queue.statistics().files == 1)
        let error = await #expect(throws: QueueError.self) { try await queue.deleteAccount("a") }
        #expect(error?.code == .accountInUse)
        await queue.shutdown()
    }

    @Test func runsAfterChangesAndEnqueueing() async throws {
        var queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.tags = ["t"]
        let id = try await queue.save(draft: request).id
        try await queue.update(id, SessionUpdate(tags: ["new"], account: "b", name: "changed", notBefore: .set(.distantFuture)))
        try await queue.addItems([TransferItem(fixture.folder.file("2", size: 10))], to: .id(id))
        try await queue.update(id, SessionUpdate(notBefore: .remove))
        #expect(try await queue.sessions(in: .tag("new")).isEmpty, "the group of a tag contains no drafts")
        await queue.shutdown()

        queue = try await fixture.open()
        let events = queue.events
        try await queue.enqueue(draft: id)
        #expect(await events.first { if case .added(let ids, let index) = $0 { "\(ids) \(index)" } else { nil } } == "[\(id)] 0")
        #expect(try await queue.sessions(in: .tag("new")).map(\.id) == [id])
        try await queue.start()
        let status = try await queue.session(id).value
        #expect(status.account == "b" && status.name == "changed" && status.statistics.filesDone == 2)
        await queue.shutdown()
    }

    @Test func enqueuesDraftAtRequestedIndex() async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await queue.enqueue([fixture.upload("a"), fixture.upload("b")]).map(\.id)
        let drafts = try await queue.saveDrafts((1...5).map { try fixture.upload("\($0)") })
        let revision = await queue.status().orderRevision
        try await queue.enqueue(draft: drafts[0], to: .index(1, expecting: revision))
        let error = await #expect(throws: QueueError.self) {
            try await queue.enqueue(draft: drafts[1], to: .index(1, expecting: revision))
        }
        #expect(error?.code == .staleOrder)
        try await queue.enqueue(draft: drafts[1], to: .index(3), held: true)
        try await queue.enqueue(draft: drafts[2], to: .front)
        let added = try await queue.apply(.enqueue(to: .before(sessions[1])), to: .state(.draft))
        #expect(added == [drafts[3], drafts[4]])
        #expect(await queue.sessionIDs() == [drafts[2], sessions[0], drafts[0], drafts[3], drafts[4], sessions[1], drafts[1]])
        #expect(try await queue.status(of: drafts[1]).state == .held)
        let refused = await #expect(throws: QueueError.self) { try await queue.enqueue(draft: drafts[0]) }
        #expect(refused?.code == .invalidTransition)
        await queue.shutdown()
    }

    @Test func rejectsOperationsThatRequireEnqueuedSession() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(fixture.upload("1"))
        let draft = try await queue.save(draft: fixture.upload("2"))
        for operation in [.run(), .runNext, .pause, .hold, .release, .move(to: .front), .cancel(), .retry] as [SessionOperation] {
            let error = await #expect(throws: QueueError.self) { try await queue.apply(operation, to: draft.reference) }
            #expect(error?.code == .invalidTransition && error?.message.contains("is a draft") == true, "\(operation)")
        }
        let error = await #expect(throws: QueueError.self) { try await session.move(to: .after(draft.id)) }
        #expect(error?.code == .invalidTransition && error?.message.contains("Enqueue it first") == true)
        #expect(try await draft.status.state == .draft)
        await queue.shutdown()
    }

    @Test func removesDraft() async throws {
        let queue = try await fixture.openWithAccounts()
        let request = try SessionRequest.upload(items: [.data(Data("x".utf8), as: RemotePath("blob"))], to: "a")
        let draft = try await queue.save(draft: request)
        let dependent = try await queue.enqueue(dependent(on: draft.id))
        #expect(try await dependent.status.state == .waiting)
        let events = draft.events
        let refused = await #expect(throws: QueueError.self) { try await draft.remove() }
        #expect(refused?.code == .hasDependents)
        try await draft.remove(isForced: true)
        var last: SessionEvent?
        for await event in events { last = event }
        guard case .ended(.removed) = last else { return #expect(Bool(false), "\(String(describing: last))") }
        #expect(await queue.status().drafts == 0)
        let spool = fixture.folder.path.appending("store").appending("spool").string
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool) == [])
        await queue.shutdown()
    }

    private func dependent(on id: SessionID) throws -> SessionRequest {
        var request = try fixture.upload("dependent")
        request.dependency = .after(id)
        return request
    }

    @Test func checksDuplicatesWhenEnqueued() async throws {
        let queue = try await fixture.openWithAccounts()
        var requests = [try fixture.upload("1"), try fixture.upload("2"), try fixture.upload("3")]
        for index in requests.indices { requests[index].deduplicationKey = "k" }
        let draft = try await queue.save(draft: requests[0])
        let second = try await queue.save(draft: requests[1])
        #expect(draft.id != second.id)
        let session = try await queue.enqueue(requests[2])
        #expect(session.id == requests[2].id)
        let error = await #expect(throws: QueueError.self) { try await draft.enqueue() }
        #expect(error?.code == .duplicate)
        try await session.remove()
        #expect(try await queue.apply(.enqueue(), to: .state(.draft)) == [draft.id])
        requests[0].deduplicatesCompleted = true
        await #expect(throws: QueueError.self) { try await queue.save(draft: requests[0]) }
        await queue.shutdown()
    }

    @Test func canBeDependency() async throws {
        let queue = try await fixture.openWithAccounts()
        let draft = try await queue.save(draft: fixture.upload("1"))
        let dependent = try await queue.enqueue(dependent(on: draft.id))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await dependent.status.why == .after(draft.id, .draft))
        let cycle = await #expect(throws: QueueError.self) {
            try await draft.update(SessionUpdate(dependency: .set(.after(dependent.id))))
        }
        #expect(cycle?.code == .impossibleOrder)
        try await draft.enqueue()
        _ = try await dependent.value
        #expect(fixture.memory.attempts.map { "\($0.path)" } == ["1", "dependent"])
        await queue.shutdown()
    }
}
