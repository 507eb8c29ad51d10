import Foundation
import Synchronization
import TransferCore

/// A transport that completes each file immediately, and records the time that the queue needs between two files.
final class InstantTransport: Transport {
    private struct State {
        var lastEnd: ContinuousClock.Instant?
        var gaps: [Double] = []
        var firstBeginning: ContinuousClock.Instant?
        var keepsFilesInFlight = false
    }

    static let shared = InstantTransport()

    let id: TransportID = "instant"
    private let state = Mutex(State())
    private let (begun, beginning) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)

    /// The seconds from the end of each file to the start of the next one. At most 10,000 values, because the memory is measured, too.
    var gaps: [Double] { state.withLock { $0.gaps } }

    /// The start of the first file.
    var firstBeginning: ContinuousClock.Instant? { state.withLock { $0.firstBeginning } }

    /// Whether files stay in flight until the queue is stopped.
    var keepsFilesInFlight: Bool {
        get { state.withLock { $0.keepsFilesInFlight } }
        set { state.withLock { $0.keepsFilesInFlight = newValue } }
    }

    /// The start times of files that stay in flight, for one reader.
    var startTimes: AsyncStream<ContinuousClock.Instant>.Iterator { begun.makeAsyncIterator() }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let now = ContinuousClock.now
        let keepsFilesInFlight = state.withLock { state in
            if state.firstBeginning == nil { state.firstBeginning = now }
            if let lastEnd = state.lastEnd, state.gaps.count < 10_000 { state.gaps.append(lastEnd.duration(to: now) / .seconds(1)) }
            return state.keepsFilesInFlight
        }
        if keepsFilesInFlight {
            beginning.yield(now)
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
