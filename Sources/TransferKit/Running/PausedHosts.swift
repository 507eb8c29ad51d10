import Foundation
import Locking
import TransferCore

/// Hosts that took too long to remove something, or asked to be left alone: everything else there waits as well.
final class PausedHosts: Sendable {
    struct Pause: Sendable {
        /// As uptime.
        var end: Duration
        /// Whether the host asked for it; otherwise it took too long.
        var isAskedFor: Bool
    }

    /// Nil until the store was read.
    private let pauses = Locked<[String: Pause]?>(nil)

    /// Takes from the store, once, which servers asked earlier processes to be left alone.
    func learn(from store: QueueStore, at now: Moment) async {
        guard pauses.withLock({ $0 == nil }), let known = try? await store.serversLeftAlone(at: now.date) else { return }
        pauses.withLock { pauses in
            var learnt: [String: Pause] = [:]
            for (endpoint, date) in known {
                // A date that is farther away was stored while this machine had another date.
                let length = min(Duration.seconds(max(0, date.timeIntervalSince(now.date))), RetryPolicy.longestRetryAfter)
                let end = max(now.uptime + length, learnt[endpoint.pausedName]?.end ?? .zero)
                learnt[endpoint.pausedName] = Pause(end: end, isAskedFor: true)
            }
            pauses = learnt
        }
    }

    /// The pause of a host; nil if it may be asked.
    func pause(of host: String, at uptime: Duration) -> Pause? {
        pauses.withLock { $0?[host] }.flatMap { $0.end > uptime ? $0 : nil }
    }

    func leaveAlone(_ endpoint: Endpoint, _ pause: Pause) {
        pauses.withLock { $0?[endpoint.pausedName] = pause }
    }
}

extension Endpoint {
    /// What is left alone together.
    var pausedName: String { host ?? address }
}
