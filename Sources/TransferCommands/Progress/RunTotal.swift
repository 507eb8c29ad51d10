package import TransferKit

/// The sum over all sessions that a run has to do, kept up to date without reading them again.
///
/// What was cancelled, removed or set aside is no part of it; what ended in this run stays, and has nothing left to do.
package struct RunTotal: Sendable {
    /// What one session adds to the sums.
    private struct Share: Sendable {
        var bytesTotal: Int64
        var bytesSent: Int64
        var hasEnded: Bool
    }

    private var shares: [SessionID: Share] = [:]
    /// How many of the sessions have completed or failed.
    package private(set) var sessionsEnded = 0
    /// The size of all files whose size is known.
    package private(set) var bytesTotal: Int64 = 0
    /// Taken by the network: a server may confirm nothing before the end of a file, and a person wants to see that it moves.
    package private(set) var bytesSent: Int64 = 0

    package init() {}

    /// How many sessions there are.
    package var sessions: Int { shares.count }

    /// Whether a session is one that is still to be done.
    func isPending(_ id: SessionID) -> Bool { shares[id]?.hasEnded == false }

    /// Notes what is known of a session that is to be done: one that is new, that goes on, or that begins again.
    package mutating func expect(_ id: SessionID, _ statistics: SessionStatistics) {
        set(id, Share(bytesTotal: statistics.bytesKnown, bytesSent: min(statistics.bytesSent, statistics.bytesKnown), hasEnded: false))
    }

    /// Notes that all of a session has arrived.
    ///
    /// - Parameter statistics: Its last figures, if they are known; a small session ends before it tells of any.
    package mutating func complete(_ id: SessionID, _ statistics: SessionStatistics?) {
        let bytes = statistics?.bytesKnown ?? shares[id]?.bytesTotal ?? 0
        set(id, Share(bytesTotal: bytes, bytesSent: bytes, hasEnded: true))
    }

    /// Notes that a session failed: what it has not sent is nothing to wait for.
    package mutating func fail(_ id: SessionID) {
        let bytes = shares[id]?.bytesSent ?? 0
        set(id, Share(bytesTotal: bytes, bytesSent: bytes, hasEnded: true))
    }

    /// Leaves a session out that is not to be done any more.
    package mutating func leaveOut(_ id: SessionID) {
        set(id, nil)
    }

    private mutating func set(_ id: SessionID, _ share: Share?) {
        for (old, sign) in [(shares[id], -1), (share, 1)] {
            guard let old else { continue }
            bytesTotal += Int64(sign) * old.bytesTotal
            bytesSent += Int64(sign) * old.bytesSent
            if old.hasEnded { sessionsEnded += sign }
        }
        shares[id] = share
    }

    /// From 0 to 1; 0 while there is nothing to do.
    package var fraction: Double {
        if bytesTotal > 0 { return min(1, max(0, Double(bytesSent) / Double(bytesTotal))) }
        return sessions > 0 ? min(1, Double(sessionsEnded) / Double(sessions)) : 0
    }
}
