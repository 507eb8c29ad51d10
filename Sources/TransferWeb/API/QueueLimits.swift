import TransferKit

/// The queue limits that a client sets, as with `transferq queue set`. If a member is missing, its limit does not change. The value null
/// removes the rate limit, the timetable, or the limit on completed sessions.
struct QueueLimits {
    private let maxSessions: Int?
    private let rateLimit: (isGiven: Bool, value: Int64?)
    private let timetable: (isGiven: Bool, value: BandwidthTimetable?)
    private let diskFloor: Int64?
    private let retention: Retention?

    /// Parses the JSON members that set limits, and removes these members from `members`.
    ///
    /// - Throws: A ``Problem`` if a value is invalid, or there is nothing to set.
    init(_ members: inout JSONMembers) throws(Problem) {
        maxSessions = try members.integer("maxSessions", in: 1...Int64(Int32.max)).map { Int($0) }
        rateLimit = (members.contains("rateLimit"), try members.integer("rateLimit", in: 1 ... .max))
        timetable = (members.contains("timetable"), try members.timetable("timetable"))
        diskFloor = try members.integer("minFree", in: 0 ... .max)
        let hasRetention = members.contains("keepCompletedCount") || members.contains("keepCompletedSeconds")
        let count = try members.integer("keepCompletedCount", in: 0...Int64(Int32.max))
        let seconds = try members.integer("keepCompletedSeconds", in: 0...Int64(Int32.max))
        guard count == nil || seconds == nil else {
            throw .invalid("Give only one of \"keepCompletedCount\" and \"keepCompletedSeconds\".")
        }
        retention = count.map { .count(Int($0)) } ?? seconds.map { .age(.seconds($0)) } ?? (hasRetention ? .keepAll : nil)
        guard maxSessions != nil || rateLimit.isGiven || timetable.isGiven || diskFloor != nil || retention != nil else {
            throw .invalid(
                "There is nothing to set. Give maxSessions, rateLimit, timetable, minFree, keepCompletedCount or keepCompletedSeconds."
            )
        }
    }

    func apply(to queue: any ControllableQueue) async throws {
        if let maxSessions { try await queue.setMaxConcurrentSessions(maxSessions, account: nil) }
        if rateLimit.isGiven { try await queue.setRateLimit(rateLimit.value, account: nil) }
        if timetable.isGiven { try await queue.setTimetable(timetable.value, account: nil) }
        if let diskFloor { try await queue.setDiskFloor(diskFloor) }
        if let retention { try await queue.setRetention(retention) }
    }
}
