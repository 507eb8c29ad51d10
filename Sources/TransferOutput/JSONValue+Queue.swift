package import TransferKit

extension JSONValue {
    /// The output of `queue status`. In the output, `rate` is the current rate, `currentRateLimit` is the limit that applies now, and `rateLimit`
    /// is the limit at times without a rule of the timetable. All three are in bytes per second.
    ///
    /// - Parameter remaining: The number of sessions that run now or will start automatically.
    package init(_ status: QueueStatus, _ remaining: Int, _ statistics: QueueStatistics) {
        let state: JSONValue = [
            "mode": .string(status.mode.rawValue),
            "idle": .bool(status.isIdle),
            "sessions": JSONValue(status.sessions),
            "running": JSONValue(status.running),
            "waiting": JSONValue(status.waiting),
            "remaining": JSONValue(remaining),
            "scheduled": JSONValue(status.scheduled),
            "paused": JSONValue(status.paused),
            "held": JSONValue(status.held),
            "drafts": JSONValue(status.drafts),
            "cancelled": JSONValue(status.cancelled),
            "completed": JSONValue(status.completed),
            "failed": JSONValue(status.failed),
            "nextDue": JSONValue(status.nextDue),
        ]
        let details: JSONValue = [
            "removalsDue": JSONValue(statistics.removalsDue),
            "orderRevision": .integer(Int64(clamping: status.orderRevision)),
            "revision": .integer(Int64(clamping: status.revision)),
        ]
        self = .joined(state, JSONValue(limitsOf: status), JSONValue(SessionStatistics(statistics)), details)
    }

    /// The output of `queue set`.
    package init(limitsOf status: QueueStatus) {
        self = [
            "maxSessions": JSONValue(status.sessionLimit), "rateLimit": JSONValue(status.rateLimit),
            "timetable": JSONValue(status.timetable?.text), "currentRateLimit": JSONValue(status.currentRateLimit),
            "minFree": .integer(status.diskFloor),
            "keepCompletedCount": JSONValue(status.retention.count),
            "keepCompletedSeconds": JSONValue(status.retention.seconds),
        ]
    }
}

extension Retention {
    /// The maximum number of completed sessions; nil if it is not limited.
    package var count: Int? { if case .count(let count) = self { count } else { nil } }

    /// The time for which completed sessions stay, in seconds; nil if the time is not limited.
    package var seconds: Double? { if case .age(let age) = self { age / .seconds(1) } else { nil } }
}
