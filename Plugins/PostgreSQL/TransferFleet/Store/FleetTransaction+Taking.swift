package import TransferCore
package import TransferKit

/// Takes sessions for members, and ends their leases. A member that dies frees its slots when its leases end.
extension FleetTransaction {
    /// An SQL expression for the end time of a session that ends now. The result is not earlier than the start of the session, even if the
    /// database's clock was set back.
    static let endTime = "greatest(created_at, started_at, clock_timestamp())"

    /// Takes the next sessions that a member may run, at most as many as the member has free slots.
    ///
    /// - Parameter identity: The identity with which the member joined.
    /// - Throws: ``QueueError`` with the code `evicted` if the member no longer belongs to the fleet.
    package func take(for member: String, identity: String, limit: Int = .max) throws -> [FleetLease] {
        try reclaim()
        try restoreStranded()
        try removeExpired()
        deletesRemoved = true
        let (slots, places) = try slotsAndPlaces(of: member, identity)
        var taken: [FleetLease] = []
        while taken.count < min(slots, limit), let id = try next(for: member, places) {
            if let lease = try take(id, for: member) { taken.append(lease) }
        }
        guard !taken.isEmpty else { return [] }
        let rates = try link.rateShares(of: member)
        for index in taken.indices { taken[index].rates = rates }
        return taken
    }

    /// Whether ``take(for:identity:limit:)`` must be called: a session may start, a lease was not renewed in time, a displaced session
    /// waits for a session that no live member may run, the retention of a session has ended, or removed sessions must still be deleted.
    /// Needs no lock, because `take` checks again.
    func mustTake(for member: String, identity: String) throws -> Bool {
        let (slots, places) = try slotsAndPlaces(of: member, identity)
        if try slots > 0 && next(for: member, places) != nil { return true }
        return try link.query(
            """
            SELECT EXISTS (SELECT FROM session WHERE owner IS NOT NULL AND lease_until <= clock_timestamp())
                OR EXISTS (SELECT FROM session WHERE \(Self.isStranded)) OR EXISTS (SELECT FROM session WHERE \(try expiredCondition()))
                OR EXISTS (SELECT FROM session WHERE \(Self.isDeletable))
            """
        ).first?.flag(0) == true
    }

    /// The number of a member's free slots, and the places (``FleetPlace``, in their stored form) whose sessions the member may run.
    private func slotsAndPlaces(of member: String, _ identity: String) throws -> (slots: Int, places: [String]) {
        let rows = try link.query(
            """
            SELECT slots - (SELECT count(*) FROM session WHERE owner = $1), 'label ' || unnest(labels || ARRAY[NULL]::text[])
            FROM member WHERE name = $1 AND identity = $2
            """, [member, identity])
        guard let first = rows.first else { throw QueueError.evicted(member) }
        return (Int(clamping: try first.integer(0)), try ["anywhere", "member \(member)"] + rows.compactMap { try $0.optional(1) })
    }

    /// Takes a session. If the session can't be read, the session fails. If its account can't be read, the member refuses the account.
    ///
    /// - Returns: Nil if the session can't be taken. The session is then no longer the next one.
    private func take(_ id: SessionID, for member: String) throws -> FleetLease? {
        let stored = try link.query(
            """
            SELECT draft, definition, account.name, part_epoch, run_requests > 0, retries
            FROM session JOIN account ON account.name = session.account LEFT JOIN content ON content.session = session.id WHERE session.id = $1
            """, ["\(id)"]
        ).first
        guard let stored else { throw PostgresError.unreadable("the session \(id)") }
        let account: Account
        do throws(PostgresError) {
            account = try stored.json(Account.self, 1)
        } catch {
            try refuse(try stored.text(2), error: .unreadable(error), by: member)
            return nil
        }
        var draft: SessionDraft
        do {
            draft = try stored.json(SessionDraft.self, 0)
            draft.progress = try adoptedProgress(of: id)
            let epoch = try stored.integer(3)
            draft.options.partEpoch = epoch == 0 ? nil : epoch
            // With another value, a member that loses its lease before it records the upload's creation could leave a complete second copy on
            // the server.
            draft.options.creation = .separate
        } catch let error as PostgresError where error.kind == .unreadable {
            try fail(id, .unreadable(error))
            return nil
        }
        let row = try link.query(
            """
            UPDATE session SET state = 'running', owner = $2, lease_epoch = lease_epoch + 1,
                lease_until = clock_timestamp() + \(FleetLease.interval), lane = 4, not_before = NULL, run_requests = 0,
                attempts = attempts + 1, error = NULL, started_at = coalesce(started_at, greatest(created_at, clock_timestamp()))
            WHERE id = $1 RETURNING lease_epoch
            """, ["\(id)", member]
        ).first
        guard let row else { throw PostgresError.unreadable("the session \(id)") }
        record(.willActivate(id), mayLetSessionsStart: false)
        record(.didActivate(id), mayLetSessionsStart: false)
        return FleetLease(
            id: id, epoch: try row.integer(0), draft: draft, account: account, mustRun: try stored.flag(4), retries: try stored.integer(5))
    }

    /// Marks a session without an owner as failed, because the session can't be read.
    private func fail(_ id: SessionID, _ error: TransferError) throws {
        try link.query(
            "UPDATE session SET state = 'failed', error = $2, ended_at = \(Self.endTime), displaced_by = NULL WHERE id = $1",
            ["\(id)", try PostgresValue.json(error)])
        record(.failed(id, error))
        try satisfyDependents(of: id, isCompleted: false)
        try restoreDisplaced(by: id)
    }

    /// Returns the next session for a member with a free slot; nil if no session can start. The next session is the first in the start
    /// order among the first sessions of all accounts below their session limits.
    ///
    /// The query does not read the sessions of an account that has reached its session limit, so the query's duration does not depend on
    /// the number of these sessions.
    private func next(for member: String, _ places: [String]) throws -> SessionID? {
        try link.query(
            """
            WITH used AS (SELECT account, count(*) AS n FROM session WHERE owner IS NOT NULL GROUP BY account),
                total AS (SELECT coalesce(sum(n), 0) AS n FROM used)
            SELECT first.id
            FROM fleet CROSS JOIN total CROSS JOIN account LEFT JOIN used ON used.account = account.name
            CROSS JOIN unnest($2::text[]) AS places(place)
            CROSS JOIN LATERAL (
                SELECT id, lane, mark, position FROM session
                WHERE state = 'waiting' AND owner IS NULL AND after_id IS NULL AND displaced_by IS NULL
                    AND session.account = account.name AND session.place = places.place
                    AND (not_before IS NULL OR not_before <= clock_timestamp())
                    AND NOT EXISTS (SELECT FROM session_refusal WHERE session_refusal.session = session.id AND session_refusal.member = $1)
                ORDER BY lane, mark DESC, position LIMIT 1
            ) AS first
            WHERE NOT fleet.is_stopped
                AND (fleet.max_sessions IS NULL OR total.n < fleet.max_sessions)
                AND (account.max_sessions IS NULL OR coalesce(used.n, 0) < account.max_sessions)
                AND NOT EXISTS (SELECT FROM refusal WHERE refusal.account = account.name AND refusal.member = $1)
                AND (NOT fleet.is_strict OR first.lane = 0 OR total.n = 0 AND NOT EXISTS (
                    SELECT FROM session AS earlier
                    WHERE earlier.position < first.position AND NOT earlier.is_removed AND earlier.state IN ('waiting', 'running', 'paused', 'held')))
            ORDER BY first.lane, first.mark DESC, first.position LIMIT 1
            """, [member, PostgresValue.array(places)]
        ).first?.session(0)
    }

    /// Ends the leases that were not renewed in time, so that other members can take their sessions. The end of a lease is not a failed
    /// attempt.
    ///
    /// - Parameter member: A member whose leases all end, because its process has ended; nil for none.
    package func reclaim(allOf member: String? = nil) throws {
        let rows = try link.query(
            """
            WITH ended AS (
                    SELECT id FROM session WHERE owner IS NOT NULL AND (lease_until <= clock_timestamp() OR owner = $1) ORDER BY id
                    FOR UPDATE SKIP LOCKED),
                changed AS (
                    UPDATE session SET owner = NULL, lease_until = NULL,
                        lane = CASE WHEN state = 'running' AND lane = 4 THEN 3 ELSE lane END,
                        -- The owner may still have its part files open, unless its process has ended.
                        part_epoch = CASE WHEN owner = $1 THEN part_epoch ELSE lease_epoch + 1 END,
                        state = CASE state WHEN 'running' THEN 'waiting' WHEN 'paused' THEN 'held' ELSE state END
                    FROM ended WHERE session.id = ended.id RETURNING session.id, state, position)
            SELECT id, state FROM changed ORDER BY position, id
            """, [member])
        for row in rows { try handleLeaseEnd(of: try row.session(0), state: try row.text(1), isInterrupted: true) }
    }

    /// Gives back a session that its owner has stopped.
    ///
    /// - Parameters:
    ///   - delay: The time before the session may start again; nil for no delay.
    ///   - isInterrupted: Whether the owner interrupted the session, for example because the owner exits. The sessions that this session displaced
    ///     then keep waiting.
    ///   - error: The error if the owner could not run the session; otherwise nil. After an error, the session has no priority over other sessions.
    /// - Returns: Whether the lease was still valid.
    @discardableResult
    package func giveBack(
        _ lease: LeaseReference, statistics: SessionStatistics?, delay: Duration? = nil, isInterrupted: Bool, error: TransferError? = nil
    ) throws -> Bool {
        let row = try link.query(
            """
            UPDATE session SET owner = NULL, lease_until = NULL, statistics = coalesce($3, statistics),
                not_before = CASE WHEN $4::float8 IS NULL THEN not_before ELSE clock_timestamp() + $4::float8 * interval '1 s' END,
                lane = CASE WHEN state = 'running' AND lane = 4 AND $5::text IS NULL THEN 3 ELSE lane END, error = coalesce($5, error),
                state = CASE state WHEN 'running' THEN 'waiting' WHEN 'paused' THEN 'held' ELSE state END
            WHERE id = $1 AND lease_epoch = $2 AND lease_until > clock_timestamp() RETURNING state
            """,
            [
                "\(lease.id)", "\(lease.epoch)", try statistics.map { try PostgresValue.json($0) },
                delay.map { "\($0.components.seconds)" }, try error.map { try PostgresValue.json($0) },
            ]
        ).first
        guard let row else { return false }
        try handleLeaseEnd(of: lease.id, state: try row.text(0), isInterrupted: isInterrupted)
        return true
    }

    /// Ends a session that has completed or failed at its owner.
    ///
    /// - Parameter statistics: The final statistics; nil for no change.
    /// - Returns: Whether the lease was still valid.
    package func finish(_ lease: LeaseReference, error: TransferError?, statistics: SessionStatistics?) throws -> Bool {
        let state = error == nil ? "completed" : "failed"
        let rows = try link.query(
            """
            UPDATE session SET owner = NULL, lease_until = NULL, state = $3, error = $4, statistics = coalesce($5, statistics),
                ended_at = \(Self.endTime), displaced_by = NULL
            WHERE id = $1 AND lease_epoch = $2 AND lease_until > clock_timestamp() RETURNING 1
            """,
            [
                "\(lease.id)", "\(lease.epoch)", state, try error.map { try PostgresValue.json($0) },
                try statistics.map { try PostgresValue.json($0) },
            ])
        guard !rows.isEmpty else { return false }
        if error == nil {
            // Any further rows stay until the session is removed.
            try link.query(
                """
                DELETE FROM progress WHERE ctid = ANY(ARRAY(
                    SELECT ctid FROM progress WHERE session = $1 AND part <> 'end' LIMIT \(Self.maximumDeletedRows)))
                """, ["\(lease.id)"])
        }
        record(error.map { .failed(lease.id, $0) } ?? .completed(lease.id))
        try satisfyDependents(of: lease.id, isCompleted: error == nil)
        try handleLeaseEnd(of: lease.id, state: state, isInterrupted: false)
        try removeExpired()
        return true
    }

    /// Handles the end of a session's lease. Sessions that this session displaced may start. If this session is cancelled, dependents that accept
    /// any end may start. A removed session is deleted at the end of the transaction. A session that must run now can displace another session.
    private func handleLeaseEnd(of id: SessionID, state: String, isInterrupted: Bool) throws {
        record(.willDeactivate(id))
        record(.didDeactivate(id))
        // After an interruption, the session is next in line, so the sessions that it displaced keep waiting. They also keep waiting if
        // another session displaced this session.
        let isDisplaced = try link.query("SELECT 1 FROM session WHERE id = $1 AND displaced_by IS NOT NULL", ["\(id)"]).first != nil
        if !(isInterrupted && state == "waiting") && !isDisplaced { try restoreDisplaced(by: id) }
        if state == "waiting" { try displace(for: id) }
        if state == "cancelled" { try satisfyDependents(of: id, isCompleted: false) }
        if try link.query("SELECT 1 FROM session WHERE id = $1 AND is_removed", ["\(id)"]).first != nil {
            try forgetDependency(on: id)
            deletesRemoved = true
        }
    }

    /// Allows the sessions that depend on an ended session to start.
    ///
    /// - Parameter isCompleted: Whether the ended session is completed. If not, only dependents that accept any end may start.
    package func satisfyDependents(of id: SessionID, isCompleted: Bool) throws {
        try link.query(
            "UPDATE session SET after_id = NULL WHERE after_id = $1 AND ($2 OR after_any)", ["\(id)", "\(isCompleted)"])
    }

    /// Removes the dependencies on a session that no longer exists.
    func forgetDependency(on id: SessionID) throws {
        try link.query("UPDATE session SET after_id = NULL WHERE after_id = $1", ["\(id)"])
    }
}

extension TransferError {
    /// The error of a session or account whose row can't be read.
    static func unreadable(_ error: PostgresError) -> TransferError { TransferError(.permanent, .storageDamaged, error.message) }
}
