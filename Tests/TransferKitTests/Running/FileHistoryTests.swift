import Testing
import TransferCore
import TransferKit

@Suite struct FileHistoryTests {
    private let endpoint = Endpoint(transport: "memory", address: "memory://a/")
    private let other = Endpoint(transport: "memory", address: "memory://b/")
    private let step: Int64 = 400 << 10

    @Test func smallGainsOfSeveralAttemptsAddUp() {
        var history = FileHistory()
        var rows: [Int] = []
        for attempt in 0..<Int64(9) {
            history.progressed(to: (attempt + 1) * step, of: nil, at: endpoint, from: attempt * step)
            history.failed(.broken, at: endpoint, uptime: .seconds(attempt))
            rows.append(history.failures)
        }
        // Each third attempt completes a MiB.
        #expect(rows == [1, 2, 1, 2, 3, 1, 2, 3, 1])
    }

    @Test func whatWasConfirmedElsewhereOrBeforeCountsOnce() {
        var history = FileHistory()
        history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
        history.failed(.broken, at: endpoint, uptime: .zero)
        // The server lost some of it: the same bytes are no progress.
        history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
        history.failed(.broken, at: endpoint, uptime: .zero)
        history.progressed(to: step, of: nil, at: other, from: 0)
        #expect(history.failures == 2)
        history.startedOver(becauseSourceChanged: false)
        history.progressed(to: step, of: nil, at: endpoint, from: 0)
        #expect(history.failures == 2)
        history.progressed(to: 3 * step, of: nil, at: endpoint, from: step)
        #expect(history.failures == 0)
    }

    /// Each life gets as far as the first one, which is progress in itself.
    @Test func aServerThatLosesTheSameAgainAndAgainIsGivenUp() {
        var history = FileHistory()
        var restarts = 0
        for _ in 0..<100 {
            history.progressed(to: 2 << 20, of: nil, at: endpoint, from: 0)
            guard history.mayRestart else { break }
            history.startedOver(becauseSourceChanged: false)
            restarts += 1
        }
        #expect(restarts == 5)
        #expect(!history.mayRestart)
        // Further than ever.
        history.progressed(to: 4 << 20, of: nil, at: endpoint, from: 2 << 20)
        #expect(history.mayRestart)
    }
}
