import Testing
import TransferCore
import TransferKit

@Suite struct RunTimeTests {
    /// The run times that a transaction adds to a session and to the queue, in milliseconds.
    private struct RunTime: Equatable {
        var key: SessionKey?
        var session: Int64
        var queue: Int64
    }

    private func times(_ transaction: Transaction) -> [RunTime] {
        transaction.writes.compactMap {
            if case .ran(let key, let session, let queue) = $0 { RunTime(key: key, session: session, queue: queue) } else { nil }
        }
    }

    private let completed = RunEvent.Content.file(
        position: 0, .completed(TransferReceipt(bytes: 1), endpoint: Account.memory("a").endpoints[0]))

    private func milliseconds(_ count: Int) -> DualInstant { .start + .milliseconds(count) }

    @Test func storesTimeWithFilesAtMostOncePerSecondAndAtEnd() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft(), .draft("b")]))
        _ = try scheduler.perform(.setMaxConcurrentSessions(2, account: nil))
        _ = try scheduler.perform(.start)
        #expect(times(try scheduler.report(completed, of: 1, at: milliseconds(999))) == [])
        #expect(times(try scheduler.report(.connected, of: 1, at: milliseconds(4_000))) == [], "this report stores no run time")
        #expect(times(try scheduler.report(completed, of: 1, at: milliseconds(5_000))) == [RunTime(key: 1, session: 5_000, queue: 5_000)])
        #expect(times(try scheduler.report(completed, of: 1, at: milliseconds(5_500))) == [])
        let finished = RunEvent.Content.ended(.finished(failure: nil, ignoresNewFiles: false))
        #expect(times(try scheduler.report(finished, of: 2, at: milliseconds(6_000))) == [RunTime(key: 2, session: 6_000, queue: 1_000)])
        #expect(times(try scheduler.report(finished, of: 1, at: milliseconds(7_250))) == [RunTime(key: 1, session: 2_250, queue: 1_250)])
        // Time without a running session does not count.
        _ = try scheduler.perform(.enqueue([.draft()]), at: milliseconds(20_000))
        #expect(times(try scheduler.report(finished, of: 3, at: milliseconds(20_100))) == [RunTime(key: 3, session: 100, queue: 100)])
    }

    @Test func storesTimeAgainAfterRejectedWrite() throws {
        var scheduler = try Scheduler.fixture()
        _ = try scheduler.perform(.enqueue([.draft()]))
        _ = try scheduler.perform(.start)
        let report = Input.report(RunEvent(key: 1, run: 1, content: completed))
        #expect(times(try scheduler.handle(report, at: milliseconds(3_000))).map(\.session) == [3_000])
        scheduler.undo()
        #expect(times(try scheduler.handle(report, at: milliseconds(4_000))).map(\.session) == [4_000])
    }

    @Test func runOfRemovedSessionCountsForQueue() throws {
        var scheduler = try Scheduler.fixture()
        let draft = SessionDraft.draft()
        _ = try scheduler.perform(.enqueue([draft]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.perform(.perform(.remove(), .one(.id(draft.id))), at: milliseconds(1_000))
        let end = Input.report(RunEvent(key: 1, run: 1, content: .ended(.interrupted)))
        #expect(times(try scheduler.handle(end, at: milliseconds(1_500))) == [RunTime(key: nil, session: 1_500, queue: 1_500)])
    }
}
