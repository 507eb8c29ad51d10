import Foundation
import Testing
import TransferCore
import TransferKit

/// The number of sessions that continue without an action by the app or the user. The model tests check that this number
/// is 0 exactly while the queue is idle.
@Suite struct RemainingTests {
    private func finish(_ key: SessionKey, _ failure: TransferError? = nil, in scheduler: inout Scheduler) throws {
        _ = try scheduler.report(.ended(.finished(failure: failure, ignoresNewFiles: false)), of: key)
    }

    @Test func countsSessionsUntilTheyEnd() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft(), .draft(), .draft("b")]))
        #expect(scheduler.remaining(at: .start) == 3, "the sessions will start once the queue starts")
        _ = try scheduler.perform(.start)
        #expect(scheduler.remaining(at: .start) == 3)
        try finish(1, in: &scheduler)
        #expect(scheduler.remaining(at: .start) == 2)
        try finish(2, TransferError(.permanent, .rejected, "No."), in: &scheduler)
        #expect(scheduler.remaining(at: .start) == 1)
        try finish(3, in: &scheduler)
        #expect(scheduler.remaining(at: .start) == 0 && scheduler.isIdle(at: .start))
    }

    @Test func countsSessionsThatWaitForTime() throws {
        var scheduler = try Scheduler.fixture()
        var later = SessionDraft.draft()
        later.notBefore = Date(timeIntervalSince1970: 1_000)
        _ = try scheduler.perform(.enqueue([.draft(), later]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.report(.ended(.backoff(.seconds(100), .broken)), of: 1)
        #expect(scheduler.remaining(at: .start) == 2)
    }

    @Test func ignoresSessionsThatNeedAction() throws {
        var scheduler = try Scheduler.fixture(maxConcurrentSessions: 2)
        let drafts = (0..<4).map { _ in SessionDraft.draft() }
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.perform(.hold, .group(.sessions([drafts[2].id]))))
        _ = try scheduler.perform(.start)
        #expect(scheduler.remaining(at: .start) == 3)
        // The paused sessions keep both slots.
        _ = try scheduler.perform(.perform(.pause, .group(.sessions([drafts[0].id, drafts[1].id]))))
        for key in [1, 2] as [SessionKey] { _ = try scheduler.report(.ended(.interrupted), of: key) }
        #expect(scheduler.remaining(at: .start) == 0 && scheduler.isIdle(at: .start))
        _ = try scheduler.perform(.perform(.cancel(), .group(.sessions([drafts[0].id]))))
        #expect(scheduler.remaining(at: .start) == 1, "the fourth session got the slot")
    }

    /// A session that depends on another session counts as long as that session can complete.
    @Test func followsDependencies() throws {
        var scheduler = try Scheduler.fixture()
        var drafts = (0..<4).map { _ in SessionDraft.draft() }
        drafts[1].dependency = .after(drafts[0].id)
        drafts[2].dependency = .after(drafts[1].id)
        drafts[3].dependency = .afterAny(drafts[2].id)
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        #expect(scheduler.remaining(at: .start) == 4)
        _ = try scheduler.perform(.perform(.hold, .group(.sessions([drafts[2].id]))))
        #expect(scheduler.remaining(at: .start) == 2)
        _ = try scheduler.perform(.perform(.release, .group(.sessions([drafts[2].id]))))
        try finish(1, TransferError(.permanent, .rejected, "No."), in: &scheduler)
        #expect(scheduler.remaining(at: .start) == 0 && scheduler.isIdle(at: .start))
    }

    @Test func countsDisplacedSessions() throws {
        var scheduler = try Scheduler.fixture()
        let drafts = [SessionDraft.draft(), SessionDraft.draft()]
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        _ = try scheduler.perform(.perform(.run(), .group(.sessions([drafts[1].id]))))
        _ = try scheduler.report(.ended(.interrupted), of: 1)
        #expect(scheduler.runningIDs == [drafts[1].id] && scheduler.remaining(at: .start) == 2)
    }

    @Test func strictQueueStopsAtHeldSession() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: .strict))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        let drafts = (0..<4).map { _ in SessionDraft.draft() }
        _ = try scheduler.perform(.enqueue(drafts))
        _ = try scheduler.perform(.start)
        #expect(scheduler.remaining(at: .start) == 4)
        _ = try scheduler.perform(.perform(.hold, .group(.sessions([drafts[2].id]))))
        #expect(scheduler.remaining(at: .start) == 2)
    }

    /// A draft starts only after the app enqueues it.
    @Test func strictQueueStopsAtDependencyOnDraft() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: .strict))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        let draft = SessionDraft.draft()
        _ = try scheduler.perform(.saveDrafts([draft]))
        var dependent = SessionDraft.draft()
        dependent.dependency = .after(draft.id)
        _ = try scheduler.perform(.enqueue([dependent, .draft()]))
        _ = try scheduler.perform(.start)
        #expect(scheduler.remaining(at: .start) == 0 && scheduler.isIdle(at: .start))
        _ = try scheduler.perform(.perform(.enqueue(to: .front), .one(.id(draft.id))))
        #expect(scheduler.remaining(at: .start) == 3 && !scheduler.isIdle(at: .start))
    }
}
