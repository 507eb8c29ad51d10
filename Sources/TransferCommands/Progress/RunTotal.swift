import TransferKit

/// The sum over all sessions that a run has to do, kept up to date without reading them again.
struct RunTotal: Sendable {
    private(set) var sessions = 0
    private(set) var sessionsEnded = 0
    private(set) var bytesTotal: Int64 = 0
    /// Taken by the network: a server may confirm nothing before the end of a file, and a person wants to see that it moves.
    private(set) var bytesSent: Int64 = 0
    /// What was sent of those that have begun and not ended.
    private var begun: [SessionID: Int64] = [:]

    mutating func expect(_ session: SessionStatus) {
        sessions += 1
        bytesTotal += session.statistics.bytesKnown
        bytesSent += session.statistics.bytesSent
        if session.statistics.bytesSent > 0 { begun[session.id] = session.statistics.bytesSent }
    }

    mutating func update(_ id: SessionID, bytes: Int64) {
        bytesSent += bytes - begun[id, default: 0]
        begun[id] = bytes
    }

    mutating func finish(_ id: SessionID) {
        begun[id] = nil
        sessionsEnded += 1
    }

    /// From 0 to 1.
    var fraction: Double {
        if bytesTotal > 0 { return min(1, max(0, Double(bytesSent) / Double(bytesTotal))) }
        return sessions > 0 ? min(1, Double(sessionsEnded) / Double(sessions)) : 1
    }
}
