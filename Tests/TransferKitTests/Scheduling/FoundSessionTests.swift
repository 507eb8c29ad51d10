import Testing
import TransferCore
import TransferKit

/// Operations on sessions that were looked up earlier and may have changed since then.
@Suite struct FoundSessionTests {
    private func draft(_ tags: [String]) -> SessionDraft {
        var draft = SessionDraft.draft()
        draft.tags = tags
        return draft
    }

    @Test func skipsRetriedSession() throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 2)
        let drafts = [SessionDraft.draft(), .draft()]
        let ids = drafts.map(\.id)
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        for key in [SessionKey(1), 2] { _ = try scheduler.report(.ended(.finished(failure: .broken, ignoresNewFiles: false)), of: key) }
        _ = try scheduler.perform(.perform(.retry, .one(.id(ids[0]))))
        for operation in [SessionOperation.cancel(), .remove()] {
            #expect(try scheduler.perform(.perform(operation, .found([ids[0]], of: .failed))).result.sessions.isEmpty)
        }
        #expect(try scheduler.perform(.perform(.remove(), .found(ids, of: .failed))).result.sessions == [ids[1]])
        #expect(scheduler.runningIDs == [ids[0]])
    }

    @Test func skipsSessionOfOtherAccount() throws {
        var scheduler = try Scheduler.fixture()
        let draft = SessionDraft.draft("b")
        _ = try scheduler.perform(.enqueue([draft]))
        #expect(try scheduler.perform(.perform(.remove(), .found([draft.id], of: .account("a")))).result.sessions.isEmpty)
        #expect(try scheduler.perform(.perform(.remove(), .found([draft.id], of: .account("b")))).result.sessions == [draft.id])
    }

    @Test func skipsSessionThatLostItsTag() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [draft(["red"]), draft(["red"])]
        let ids = drafts.map(\.id)
        _ = try scheduler.perform(.enqueue(drafts))
        // Two operations read the tags at the same time. The first operation ends before the update.
        scheduler.beginReadingTags()
        scheduler.beginReadingTags()
        scheduler.endReadingTags()
        _ = try scheduler.perform(.perform(.update(SessionUpdate(tags: ["blue"])), .one(.id(ids[0]))))
        #expect(try scheduler.perform(.perform(.hold, .found(ids, of: .tag("red")))).result.sessions == [ids[1]])
        _ = try scheduler.perform(.perform(.update(SessionUpdate(tags: ["red"])), .one(.id(ids[0]))))
        #expect(try scheduler.perform(.perform(.remove(), .found(ids, of: .tag("red")))).result.sessions == ids)
        scheduler.endReadingTags()
    }

    @Test func keepsTagAfterRejectedUpdate() throws {
        var scheduler = try Scheduler.fixture()
        let red = draft(["red"])
        _ = try scheduler.perform(.enqueue([red]))
        scheduler.beginReadingTags()
        _ = try scheduler.handle(.command(.perform(.update(SessionUpdate(tags: [])), .one(.id(red.id)))), at: .start)
        scheduler.undo()
        #expect(try scheduler.perform(.perform(.hold, .found([red.id], of: .tag("red")))).result.sessions == [red.id])
    }

    @Test func batchesOfGroupShareStartPriority() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = (0..<5).map { _ in SessionDraft.draft() }
        let ids = drafts.map(\.id)
        _ = try scheduler.perform(.enqueue(drafts))
        let first = try scheduler.perform(.perform(.runNext, .found([ids[1], ids[2]], of: .all))).result
        _ = try scheduler.perform(.perform(.runNext, .one(.id(ids[4]))))
        let more = SessionTarget.more([ids[3]], of: .all, mark: first.part.mark)
        #expect(first.part.last == ids[2])
        #expect(try scheduler.perform(.perform(.runNext, more)).result.part.mark == first.part.mark)
        // The third call continues the group of the first call, so the session of the second call starts before the whole group.
        _ = try scheduler.perform(.start)
        var started: [SessionID] = []
        while let id = scheduler.runningIDs.first, let key = scheduler.sessionIndex.key(of: id) {
            started.append(id)
            _ = try scheduler.report(.ended(.finished(failure: nil, ignoresNewFiles: false)), of: key)
        }
        #expect(started == [4, 1, 2, 3, 0].map { ids[$0] })
    }
}
