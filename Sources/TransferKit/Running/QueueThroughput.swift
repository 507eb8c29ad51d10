import Locking
import TransferCore

/// The recent rate of all runs together. Fed ten times a second by each run that moves something, and at its end, so that many short runs
/// count as much as a long one.
package final class QueueThroughput: Sendable {
    private struct State: Sendable {
        var meter = RateMeter()
        var sampledAt = Duration.zero
        /// What each run had moved when it was last seen.
        var seen: [UInt64: Int64] = [:]
        var moved: Int64 = 0
    }

    /// After such a time without any run, what moved before says nothing about now.
    private static let memory = Duration.seconds(3)

    private let state = Locked(State())

    package init() {}

    package func begin(_ run: UInt64, at uptime: Duration) {
        state.withLock { state in
            if state.seen.isEmpty, uptime - state.sampledAt > Self.memory {
                state.meter = RateMeter()
                state.meter.sample(bytes: state.moved, at: uptime)
                state.sampledAt = uptime
            }
            state.seen[run] = 0
        }
    }

    /// A run has moved so many bytes since it began; one that is over is ignored.
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

    /// Bytes per second; nil if nothing runs, or nothing is known yet.
    package func rate(at uptime: Duration) -> Double? {
        state.withLock { state in
            guard !state.seen.isEmpty else { return nil }
            // What moves nothing tells nothing.
            state.meter.sample(bytes: state.moved, at: uptime)
            state.sampledAt = uptime
            return state.meter.rate
        }
    }
}
