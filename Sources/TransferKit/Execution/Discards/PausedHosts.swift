import Foundation
import Locking
import TransferCore

/// The hosts that took too long for a removal, or asked to back off. All removals at a paused host wait.
final class PausedHosts: Sendable {
    struct Pause: Sendable {
        /// The uptime at which the pause ends.
        var end: Duration
        /// Whether the host asked to back off; otherwise the host took too long.
        var wasRequested: Bool
    }

    /// The pauses by the host's name; nil until the store has been read.
    private let pauses = Locked<[String: Pause]?>(nil)

    /// Reads which hosts asked earlier processes to back off. Has no effect after the first successful call.
    func learn(from store: QueueStore, at now: DualInstant) async {
        guard pauses.withLock({ $0 == nil }), let known = try? await store.pausedServers(at: now.date) else { return }
        pauses.withLock { pauses in
            var learnt: [String: Pause] = [:]
            for (endpoint, date) in known {
                // The pause is limited, because this machine's clock may have been set back since the date was stored.
                let length = min(Duration.seconds(max(0, date.timeIntervalSince(now.date))), RetryPolicy.longestRetryAfter)
                let end = max(now.uptime + length, learnt[endpoint.pausedName]?.end ?? .zero)
                learnt[endpoint.pausedName] = Pause(end: end, wasRequested: true)
            }
            pauses = learnt
        }
    }

    /// The pause of a host; nil if the host is not paused.
    func pause(of host: String, at uptime: Duration) -> Pause? {
        pauses.withLock { $0?[host] }.flatMap { $0.end > uptime ? $0 : nil }
    }

    func pause(_ endpoint: Endpoint, _ pause: Pause) {
        pauses.withLock { $0?[endpoint.pausedName] = pause }
    }
}

extension Endpoint {
    /// The host in the endpoint's address, or the whole address if it has no host. Endpoints with the same value are paused together.
    var pausedName: String { host ?? address }
}
