import Foundation
import Synchronization
import TransferCore

/// Says at once that all has arrived, and notes how long the queue took from one file to the next.
final class InstantTransport: Transport {
    private struct State {
        var lastEnd: ContinuousClock.Instant?
        var gaps: [Double] = []
        var limit = Int.max
        var waiter: CheckedContinuation<Void, Never>?
    }

    static let shared = InstantTransport()

    let id: TransportID = "instant"
    private let state = Mutex(State())

    /// Seconds from the end of a file to the beginning of the next.
    var gaps: [Double] { state.withLock { $0.gaps } }

    /// After so many files nothing ends any more.
    var limit: Int {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let now = ContinuousClock.now
        let isOver = state.withLock { state in
            if let lastEnd = state.lastEnd { state.gaps.append(lastEnd.duration(to: now) / .seconds(1)) }
            return state.gaps.count >= state.limit
        }
        if isOver {
            state.withLock { $0.waiter.take() }?.resume()
            // Until the queue is stopped.
            for await _ in AsyncStream(Void.self, { _ in }) {}
            try Task.checkCancellation()
        }
        let size = try attempt.source.size
        reporter.report(sent: size, confirmed: size)
        state.withLock { $0.lastEnd = .now }
        return TransferReceipt(bytes: size)
    }

    /// Returns once the limit is reached.
    func reached() async throws {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = continuation }
        }
    }

    func shutdown() async {}
}
