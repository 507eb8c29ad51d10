/// The stored settings of a queue. If a setting is nil, the value from the configuration applies. The configuration contains neither a rate
/// limit nor a timetable. For these two settings, nil means no limit.
package struct QueueSettings: Sendable, Equatable {
    package var orderRevision: UInt64 = 0
    package var maxConcurrentSessions: Int?
    package var rateLimit: Int64?
    package var retention: Retention?
    package var diskFloor: Int64?
    package var timetable: BandwidthTimetable?
    /// The completed or removed sessions whose dependents have not all been released yet.
    package var releases: [SessionID] = []

    package init(
        orderRevision: UInt64 = 0, maxConcurrentSessions: Int? = nil, rateLimit: Int64? = nil, retention: Retention? = nil,
        diskFloor: Int64? = nil, timetable: BandwidthTimetable? = nil, releases: [SessionID] = []
    ) {
        self.orderRevision = orderRevision
        self.maxConcurrentSessions = maxConcurrentSessions
        self.rateLimit = rateLimit
        self.retention = retention
        self.diskFloor = diskFloor
        self.timetable = timetable
        self.releases = releases
    }
}
