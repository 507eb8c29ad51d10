import Foundation
import Synchronization
import TransferCore

/// A transport that completes each file immediately, or keeps files in flight, and records the time between the end of one file and the
/// start of the next.
final class InstantTransport: Transport {
    private struct State {
        var lastEnd: ContinuousClock.Instant?
        var gaps: [Double] = []
        var firstStart: ContinuousClock.Instant?
        var keepsFilesInFlight = false
    }

    static let shared = InstantTransport()

    let id: TransportID = "instant"
    private let state = Mutex(State())
    private let (starts, startContinuation) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)

    /// The seconds from the end of each file to the start of the next one. Contains at most 10,000 values, so that they hardly affect the
    /// measured memory.
    var gaps: [Double] { state.withLock { $0.gaps } }

    /// The time at which the first file started; nil if none has started.
    var firstStart: ContinuousClock.Instant? { state.withLock { $0.firstStart } }

    /// Whether files stay in flight until the queue is stopped.
    var keepsFilesInFlight: Bool {
        get { state.withLock { $0.keepsFilesInFlight } }
        set { state.withLock { $0.keepsFilesInFlight = newValue } }
    }

    /// The start times of files that stay in flight, for one reader.
    var startTimes: AsyncStream<ContinuousClock.Instant>.Iterator { starts.makeAsyncIterator() }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let now = ContinuousClock.now
        let keepsFilesInFlight = state.withLock { state in
            if state.firstStart == nil { state.firstStart = now }
            if let lastEnd = state.lastEnd, state.gaps.count < 10_000 { state.gaps.append(lastEnd.duration(to: now) / .seconds(1)) }
            return state.keepsFilesInFlight
        }
        if keepsFilesInFlight {
            startContinuation.yield(now)
            for await _ in AsyncStream(Void.self, { _ in }) {}
            try Task.checkCancellation()
        }
        let size = try attempt.source.size
        reporter.report(sent: size, confirmed: size)
        state.withLock { $0.lastEnd = .now }
        return TransferReceipt(bytes: size)
    }

    func shutdown() async {}
}
