import Testing
import TransferCommands
import TransferKit

@Suite struct RunTotalTests {
    private let a = SessionID()
    private let b = SessionID()

    private func figures(_ total: Int64, sent: Int64 = 0) -> SessionStatistics {
        SessionStatistics(bytesTotal: total, bytesSent: sent)
    }

    /// Returns the sent bytes, the total bytes, the number of ended sessions, and the number of all sessions.
    private func sums(_ total: RunTotal) -> [Int64] {
        [total.bytesSent, total.bytesTotal, Int64(total.sessionsEnded), Int64(total.sessions)]
    }

    @Test func fractionIsZeroWithoutSessions() {
        #expect(RunTotal().fraction == 0)
    }

    /// The size of a folder counts as 0 until the folder is read, and then grows.
    @Test func includesGrowthOfFolder() {
        var total = RunTotal()
        total.expect(a, figures(100))
        total.expect(b, figures(0))
        total.expect(b, figures(50, sent: 10))
        total.expect(b, figures(300, sent: 20))
        #expect(sums(total) == [20, 400, 0, 2])
        #expect(total.fraction == 0.05)
        total.complete(b, figures(300, sent: 300))
        #expect(sums(total) == [300, 400, 1, 2])
    }

    /// Without the size of a file, the fraction would be wrong.
    @Test func hasNoFractionWhileSizeIsUnknown() {
        var total = RunTotal()
        total.expect(a, figures(100, sent: 50))
        total.expect(b, SessionStatistics(bytesTotal: 10, bytesSent: 30, filesUnsized: 1))
        #expect(total.fraction == nil && total.bytesSent == 80)
        total.expect(b, figures(300, sent: 50))
        #expect(total.fraction == 0.25)
        total.expect(b, SessionStatistics(filesUnsized: 1))
        total.fail(b)
        #expect(total.fraction == 0.5)
    }

    /// The sum of the rates alone suggests a shorter time than the slow session needs.
    @Test func totalTakesAtLeastAsLongAsEachSession() {
        let (fast, slow) = (
            SessionStatistics(bytesTotal: 1_000, rate: 100, secondsRemaining: 10),
            SessionStatistics(bytesTotal: 1_000, rate: 1, secondsRemaining: 1_000)
        )
        var total = RunTotal()
        total.expect(a, fast)
        total.expect(b, slow)
        #expect(total.secondsRemaining([fast, slow]) == 1_000)
        // Waiting sessions also take time.
        total.expect(SessionID(), figures(1_000_000))
        #expect(total.secondsRemaining([fast, slow]) == 1_002_000.0 / 101)
        #expect(total.secondsRemaining([]) == nil)
    }

    /// A small session may complete before it reports progress.
    @Test func countsSessionsWithoutProgress() {
        var total = RunTotal()
        total.expect(a, figures(7))
        total.complete(a, nil)
        total.complete(b, figures(3))
        #expect(sums(total) == [10, 10, 2, 2])
        #expect(total.fraction == 1)
    }

    @Test func omitsExcludedSessions() {
        var total = RunTotal()
        total.expect(a, figures(100, sent: 50))
        total.expect(b, figures(100, sent: 1))
        total.exclude(a)
        total.exclude(a)
        #expect(sums(total) == [1, 100, 0, 1])
        // A failed session will send no more bytes, so only its sent bytes count.
        total.fail(b)
        #expect(sums(total) == [1, 1, 1, 1])
        #expect(total.fraction == 1)
    }

    /// Each session has the largest permitted size.
    @Test func limitsSumsOfLargestSessions() {
        var total = RunTotal()
        let (ids, size) = ((0..<9).map { _ in SessionID() }, FileSize.sessionMaximum)
        for id in ids { total.expect(id, figures(size)) }
        #expect(sums(total) == [0, .max, 0, 9])
        for id in ids { total.complete(id, figures(size, sent: size)) }
        #expect(sums(total) == [.max, .max, 9, 9])
        #expect(total.fraction == 1)
        for id in ids { total.exclude(id) }
        #expect(sums(total) == [0, 0, 0, 0])
    }

    @Test func countsBytesOnceIfSessionRunsAgain() {
        var total = RunTotal()
        total.expect(a, figures(100, sent: 60))
        total.fail(a)
        total.expect(a, figures(100, sent: 60))
        #expect(sums(total) == [60, 100, 0, 1])
        total.expect(a, figures(100, sent: 80))
        total.complete(a, figures(100, sent: 100))
        #expect(sums(total) == [100, 100, 1, 1])
        total.expect(a, figures(100))
        #expect(sums(total) == [0, 100, 0, 1])
    }
}
