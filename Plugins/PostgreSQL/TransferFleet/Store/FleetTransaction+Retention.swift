import TransferKit

extension FleetTransaction {
    /// The maximum number of sessions that one transaction removes, so that heartbeats and members that take sessions do not wait long.
    private static let maximumRemovals = 100

    /// Sets the retention of completed sessions; nil keeps all sessions.
    func setRetention(_ retention: Retention?) throws {
        let stored = try retention.flatMap { $0 == .keepAll ? nil : try PostgresValue.json($0) }
        try link.query("UPDATE fleet SET retention = $1", [stored])
        record(.limitsChanged)
    }

    /// An SQL condition for completed sessions whose retention has ended.
    func expiredCondition() throws -> String {
        var problem: TransferError?
        guard let row = try link.query("SELECT retention FROM fleet").first,
            let retention = try row.readable(Retention.self, 0, &problem)
        else { return "false" }
        let isOld: String
        switch retention {
        case .keepAll: return "false"
        // Selects the sessions that ended before the oldest one that stays.
        case .count(let count):
            isOld = """
                (ended_at, id) < (SELECT ended_at, id FROM session WHERE state = 'completed' AND NOT is_removed
                    ORDER BY ended_at DESC, id DESC OFFSET \(max(0, count - 1)) LIMIT 1)\(count == 0 ? " OR true" : "")
                """
        case .age(let age): isOld = "ended_at <= clock_timestamp() - interval '\(age.components.seconds) s'"
        }
        return "state = 'completed' AND owner IS NULL AND NOT is_removed AND (\(isOld))"
    }

    /// Removes completed sessions whose retention has ended, the oldest first.
    ///
    /// - Returns: Whether to call this method again, because removed or expired sessions may remain.
    @discardableResult
    package func removeExpired() throws -> Bool {
        // Delete removed sessions first. Otherwise, they would accumulate.
        if try deleteRemoved() { return true }
        let ids = try link.query(
            "SELECT id FROM session WHERE \(try expiredCondition()) ORDER BY ended_at, id LIMIT \(Self.maximumRemovals)"
        ).map { try $0.session(0) }
        guard !ids.isEmpty else { return false }
        let removed = try indices(of: ids).sorted { $0.value < $1.value }
        for id in ids { try forgetDependency(on: id) }
        try link.query("UPDATE session SET is_removed = true WHERE id = ANY($1::uuid[])", [PostgresValue.array(ids.map { "\($0)" })])
        deletesRemoved = true
        adjustSessionCount(by: -ids.count)
        try recordOrder(.removed(removed.map(\.key), indices: removed.map(\.value)))
        return ids.count == Self.maximumRemovals
    }

    /// The maximum number of rows with progress of files that one transaction deletes. A completed file has at least one such row.
    static let maximumDeletedRows: Int64 = 10_000

    /// Deletes removed sessions that no member has, at most ``maximumRemovals``, with their progress. All calls in one transaction delete at most
    /// ``maximumDeletedRows`` rows with progress, and each call stops after ``deletionTime``; later transactions delete the rest.
    ///
    /// - Returns: Whether removed sessions may remain.
    @discardableResult
    func deleteRemoved() throws -> Bool {
        let end = ContinuousClock.now + Self.deletionTime
        let ids = try link.query("SELECT id FROM session WHERE \(Self.isDeletable) ORDER BY id LIMIT \(Self.maximumRemovals)")
            .map { try $0.session(0) }
        for id in ids {
            let row = try link.query(
                """
                WITH deleted AS (
                    DELETE FROM progress WHERE ctid = ANY(ARRAY(SELECT ctid FROM progress WHERE session = $1 LIMIT $2)) RETURNING 1)
                SELECT count(*) FROM deleted
                """, ["\(id)", "\(deletableRows)"]
            ).first
            deletableRows -= min(deletableRows, try row?.integer(0) ?? 0)
            guard deletableRows > 0, ContinuousClock.now < end else { return true }
            try link.query("DELETE FROM session WHERE id = $1", ["\(id)"])
        }
        return ids.count == Self.maximumRemovals
    }

    private static let deletionTime = Duration.seconds(1)

    static let isDeletable = "is_removed AND owner IS NULL"
}
