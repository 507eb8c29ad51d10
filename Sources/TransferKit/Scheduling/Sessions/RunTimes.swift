/// The running times of each run, and of the queue as a whole, that are not stored yet. Only whole milliseconds are stored; the remaining
/// fraction counts towards the next write.
package struct RunTimes: Sendable, Equatable {
    /// The uptime up to which the time of each run was stored.
    private var since: [UInt64: Duration] = [:]
    /// The uptime up to which the queue's time was stored; nil while no session runs.
    private var queueSince: Duration?

    mutating func begin(_ run: UInt64, at uptime: Duration) {
        since[run] = uptime
        if queueSince == nil { queueSince = uptime }
    }

    /// The running time of a run that is not stored yet; zero if there is no such run.
    func unrecorded(_ run: UInt64, at uptime: Duration) -> Duration {
        since[run].map { max(.zero, uptime - $0) } ?? .zero
    }

    /// The running time of the queue that is not stored yet.
    func unrecordedOfQueue(at uptime: Duration) -> Duration {
        queueSince.map { max(.zero, uptime - $0) } ?? .zero
    }

    /// Returns the times of a run and of the queue that are not stored yet, in milliseconds. After the call, these times count as stored.
    mutating func record(_ run: UInt64, at uptime: Duration) -> (session: Int64, queue: Int64) {
        (Self.recordTime(&since[run], at: uptime), Self.recordTime(&queueSince, at: uptime))
    }

    /// Returns the times of an ended run and of the queue that are not stored yet, in milliseconds. Forgets the run.
    mutating func end(_ run: UInt64, at uptime: Duration) -> (session: Int64, queue: Int64) {
        let times = record(run, at: uptime)
        since[run] = nil
        if since.isEmpty { queueSince = nil }
        return times
    }

    private static func recordTime(_ since: inout Duration?, at uptime: Duration) -> Int64 {
        guard let start = since, uptime > start else { return 0 }
        let milliseconds = (uptime - start).nanoseconds / 1_000_000
        since = start + .milliseconds(milliseconds)
        return milliseconds
    }
}
