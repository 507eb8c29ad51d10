import Locking
import TransferCore

/// The recent rate of all runs together. Each run that moves bytes reports ten times a second. Each run also reports when it ends, so that the bytes
/// of short runs count, too.
package final class QueueThroughput: Sendable {
    private struct State: Sendable {
        var meter = RateMeter()
        var sampledAt = Duration.zero
        /// The bytes that each run had moved at its last sample.
        var seen: [UInt64: Int64] = [:]
        var moved: Int64 = 0
        var isPublishing = false
    }

    /// The time without a sample after which earlier samples no longer count. Checked when a run begins while no other run is in progress.
    private static let sampleLifetime = Duration.seconds(3)

    private let state = Locked(State())

    package init() {}

    /// Records that a task publishes the statistics of the queue.
    ///
    /// - Returns: False if another task already publishes them.
    func beginPublishing() -> Bool {
        state.withLock { state in
            defer { state.isPublishing = true }
            return !state.isPublishing
        }
    }

    func endPublishing() { state.withLock { $0.isPublishing = false } }

    package func begin(_ run: UInt64, at uptime: Duration) {
        state.withLock { state in
            if state.seen.isEmpty, uptime - state.sampledAt > Self.sampleLifetime {
                state.meter = RateMeter()
                state.meter.sample(bytes: state.moved, at: uptime)
                state.sampledAt = uptime
            }
            state.seen[run] = 0
        }
    }

    /// Records the bytes that a run has moved since it began. Has no effect after the run has ended.
    package func sample(_ run: UInt64, moved: Int64, at uptime: Duration) {
        state.withLock { state in
            guard let seen = state.seen[run] else { return }
            state.seen[run] = max(seen, moved)
            state.moved.addSaturated(max(0, moved - seen))
            state.meter.sample(bytes: state.moved, at: uptime)
            state.sampledAt = uptime
        }
    }

    package func end(_ run: UInt64, moved: Int64, at uptime: Duration) {
        sample(run, moved: moved, at: uptime)
        state.withLock { $0.seen[run] = nil }
    }

    /// The rate in bytes per second; nil if no run is in progress, or if there are no samples yet.
    package func rate(at uptime: Duration) -> Double? {
        state.withLock { state in
            guard !state.seen.isEmpty else { return nil }
            // Runs that move no bytes report no samples. Without this sample, the rate would then not fall.
            state.meter.sample(bytes: state.moved, at: uptime)
            state.sampledAt = uptime
            return state.meter.rate
        }
    }
}
