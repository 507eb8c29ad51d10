/// How long each run, and the queue as a whole, has been at work since that was last noted. Counts whole milliseconds and loses none.
package struct RunTimes: Sendable, Equatable {
    private var since: [UInt64: Duration] = [:]
    /// Set while anything runs.
    private var queueSince: Duration?

    mutating func begin(_ run: UInt64, at uptime: Duration) {
        since[run] = uptime
        if queueSince == nil { queueSince = uptime }
    }

    /// How long ago the times of a run were noted; zero if there is no such run.
    func unnoted(_ run: UInt64, at uptime: Duration) -> Duration {
        since[run].map { max(.zero, uptime - $0) } ?? .zero
    }

    /// How long the queue has been at work since that was noted.
    func unnotedOfQueue(at uptime: Duration) -> Duration {
        queueSince.map { max(.zero, uptime - $0) } ?? .zero
    }

    /// Notes the times of a run and of the queue.
    mutating func note(_ run: UInt64, at uptime: Duration) -> (session: Int64, queue: Int64) {
        (Self.take(&since[run], at: uptime), Self.take(&queueSince, at: uptime))
    }

    /// The times of a run that is over.
    mutating func end(_ run: UInt64, at uptime: Duration) -> (session: Int64, queue: Int64) {
        let times = note(run, at: uptime)
        since[run] = nil
        if since.isEmpty { queueSince = nil }
        return times
    }

    private static func take(_ since: inout Duration?, at uptime: Duration) -> Int64 {
        guard let start = since, uptime > start else { return 0 }
        let milliseconds = (uptime - start).nanoseconds / 1_000_000
        since = start + .milliseconds(milliseconds)
        return milliseconds
    }
}
