package import TransferKit

/// The totals of all sessions in a run, updated incrementally.
///
/// Cancelled, removed, paused and held sessions are excluded. Sessions that ended in this run stay included, with no bytes remaining.
package struct RunTotal: Sendable {
    /// The contribution of one session to the totals.
    private struct Share: Sendable {
        var bytesTotal: Int64
        var bytesSent: Int64
        var hasEnded: Bool
        /// Whether the session has files of unknown size.
        var isUnsized = false
    }

    private var shares: [SessionID: Share] = [:]
    /// The number of completed and failed sessions.
    package private(set) var sessionsEnded = 0
    /// The total size in bytes of all files of known size, without the untransferred bytes of failed sessions.
    package private(set) var bytesTotal: Int64 = 0
    /// The number of unfinished sessions with files of unknown size.
    private var sessionsUnsized = 0
    /// The number of sent or received bytes. Some servers confirm bytes only at the end of a file, so a count of confirmed bytes would show
    /// no progress.
    package private(set) var bytesSent: Int64 = 0

    package init() {}

    /// The number of sessions.
    package var sessions: Int { shares.count }

    /// Whether a session is included and has not ended.
    func isPending(_ id: SessionID) -> Bool { shares[id]?.hasEnded == false }

    /// Includes a waiting or running session, or updates its share of the totals.
    package mutating func expect(_ id: SessionID, _ statistics: SessionStatistics) {
        let isUnsized = statistics.bytesTotal == nil
        let bytesSent = isUnsized ? statistics.bytesSent : min(statistics.bytesSent, statistics.bytesKnown)
        set(id, Share(bytesTotal: statistics.bytesKnown, bytesSent: bytesSent, hasEnded: false, isUnsized: isUnsized))
    }

    /// Marks a session as completed.
    ///
    /// - Parameter statistics: The final statistics; nil if they are unknown, for example because the completed session was already removed.
    package mutating func complete(_ id: SessionID, _ statistics: SessionStatistics?) {
        let bytes = statistics?.bytesKnown ?? shares[id]?.bytesTotal ?? 0
        set(id, Share(bytesTotal: bytes, bytesSent: bytes, hasEnded: true))
    }

    /// Marks a session as failed, and subtracts its untransferred bytes from the total.
    package mutating func fail(_ id: SessionID) {
        let bytes = shares[id]?.bytesSent ?? 0
        set(id, Share(bytesTotal: bytes, bytesSent: bytes, hasEnded: true))
    }

    /// Excludes a session that will not run.
    package mutating func exclude(_ id: SessionID) {
        set(id, nil)
    }

    private mutating func set(_ id: SessionID, _ share: Share?) {
        for (addend, sign) in [(shares[id], -1), (share, 1)] {
            guard let addend else { continue }
            // The sum of eight sessions of the largest size exceeds the range of Int64, so the sums saturate.
            bytesTotal = max(0, bytesTotal.addingSaturated(Int64(sign) * addend.bytesTotal))
            bytesSent = max(0, bytesSent.addingSaturated(Int64(sign) * addend.bytesSent))
            if addend.hasEnded { sessionsEnded += sign }
            if addend.isUnsized { sessionsUnsized += sign }
        }
        shares[id] = share
    }

    /// The remaining time in seconds; nil if it is unknown.
    ///
    /// The result is the time that all remaining bytes take at the sum of the running sessions' rates, but at least the remaining time of the
    /// slowest session.
    ///
    /// - Parameter running: The statistics of the running sessions.
    package func secondsRemaining(_ running: [SessionStatistics]) -> Double? {
        let rate = running.compactMap(\.rate).reduce(0, +)
        let remaining = bytesTotal - bytesSent
        guard fraction != nil, rate > 0, remaining > 0 else { return nil }
        // The statistics of a session whose bytes were all transferred contain no remaining time.
        guard let longest = running.map({ $0.isSent ? 0 : $0.secondsRemaining }).compactMap(\.self).max() else { return nil }
        return max(longest, Double(remaining) / rate)
    }

    /// Whether all bytes of all sessions were sent or received, but not all sessions have ended.
    var isSent: Bool { sessionsUnsized == 0 && bytesTotal > 0 && bytesSent >= bytesTotal && sessionsEnded < sessions }

    /// The completed fraction, 0 to 1; 0 without sessions, and nil while the size of a file is unknown.
    package var fraction: Double? {
        guard sessionsUnsized == 0 else { return nil }
        if bytesTotal > 0 { return min(1, max(0, Double(bytesSent) / Double(bytesTotal))) }
        return sessions > 0 ? min(1, Double(sessionsEnded) / Double(sessions)) : 0
    }
}

extension SessionStatistics {
    /// Whether all bytes were sent or received, but some files have neither completed nor failed.
    var isSent: Bool { bytesTotal.map { $0 > 0 && bytesSent >= $0 } ?? false && filesDone + filesFailed < files }
}
