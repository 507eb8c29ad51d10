import Foundation
import Locking
import TransferCore

/// The hosts to which the queue currently sends no removals, because the hosts took too long for a removal, or asked the queue to back off. All
/// removals at such a host wait until its pause ends.
final class PausedHosts: Sendable {
    struct Pause: Sendable {
        /// The uptime at which the pause ends.
        var end: Duration
        /// Whether the host asked the queue to back off; false if the host took too long.
        var wasRequested: Bool
    }

    private struct State: Sendable {
        var pauses: [String: Pause] = [:]
        /// Whether the pauses of earlier processes have been read from the database.
        var hasLoaded = false
    }

    private let state = Locked(State())

    /// Reads the hosts that asked earlier processes to back off. Keeps the pauses that began in this process, unless the database contains a longer
    /// pause. Has no effect after the first successful call.
    func load(from store: QueueStore, at now: DualInstant) async {
        guard state.withLock({ !$0.hasLoaded }), let known = try? await store.backOffEndpoints(at: now.date) else { return }
        state.withLock { state in
            state.hasLoaded = true
            for (endpoint, date) in known {
                // The pause is limited, because this machine's clock may have been set back since the date was stored.
                let length = min(Duration.seconds(max(0, date.timeIntervalSince(now.date))), RetryPolicy.longestRetryAfter)
                let end = now.uptime + length
                if let pause = state.pauses[endpoint.pauseKey], pause.end >= end { continue }
                state.pauses[endpoint.pauseKey] = Pause(end: end, wasRequested: true)
            }
        }
    }

    func pause(of host: String, at uptime: Duration) -> Pause? {
        state.withLock { $0.pauses[host] }.flatMap { $0.end > uptime ? $0 : nil }
    }

    func pause(_ endpoint: Endpoint, _ pause: Pause) {
        state.withLock { $0.pauses[endpoint.pauseKey] = pause }
    }
}

extension Endpoint {
    /// The host in the endpoint's address, or the whole address if the address has no host. Endpoints with the same value are paused together.
    var pauseKey: String { host ?? address }
}
