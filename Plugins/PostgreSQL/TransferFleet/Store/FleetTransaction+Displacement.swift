package import TransferKit

extension FleetTransaction {
    /// Interrupts one running session (the victim) if a session that must run now (the preemptor) lacks only a slot.
    ///
    /// The victim is the last session in the order that runs on a member that may run the preemptor. If the preemptor's account is full,
    /// the victim is a session of this account. The victim waits until the preemptor no longer needs the slot. A pause, an interruption or
    /// a displacement of the preemptor does not end this wait.
    package func displace(for id: SessionID) throws {
        guard
            let row = try link.query(
                """
                WITH preemptor AS (
                        SELECT * FROM session WHERE id = $1 AND owner IS NULL AND state = 'waiting' AND lane = 0
                            AND (not_before IS NULL OR not_before <= clock_timestamp())),
                    able AS (
                        SELECT member.name, member.slots - (SELECT count(*) FROM session WHERE owner = member.name) AS free
                        FROM member CROSS JOIN preemptor
                        WHERE live_until > clock_timestamp() AND \(FleetPlace.memberMayRun("preemptor")))
                SELECT NOT fleet.is_stopped AND EXISTS (SELECT FROM able),
                    EXISTS (SELECT FROM able WHERE free > 0)
                        AND (fleet.max_sessions IS NULL OR (SELECT count(*) FROM session WHERE owner IS NOT NULL) < fleet.max_sessions),
                    account.max_sessions IS NOT NULL AND account.max_sessions <=
                        (SELECT count(*) FROM session WHERE owner IS NOT NULL AND session.account = account.name),
                    EXISTS (SELECT FROM session WHERE displaced_by = $1 AND owner IS NOT NULL),
                    (SELECT id FROM session JOIN able ON able.name = session.owner
                        WHERE state = 'running' AND session.id <> $1 ORDER BY position DESC, id DESC LIMIT 1),
                    (SELECT id FROM session JOIN able ON able.name = session.owner
                        WHERE state = 'running' AND session.id <> $1 AND session.account = account.name ORDER BY position DESC, id DESC LIMIT 1)
                FROM fleet CROSS JOIN preemptor JOIN account ON account.name = preemptor.account
                """, ["\(id)"]
            ).first
        else { return }
        let (canRun, hasSlot, isAccountFull, isDisplacing) = (try row.flag(0), try row.flag(1), try row.flag(2), try row.flag(3))
        guard canRun, !isDisplacing, !hasSlot || isAccountFull else { return }
        let column = isAccountFull ? 5 : 4
        guard try row.optional(column) != nil else { return }
        let victim = try row.session(column)
        let owners = try link.query(
            "UPDATE session SET state = 'waiting', lane = 4, displaced_by = $2 WHERE id = $1 RETURNING owner", ["\(victim)", "\(id)"])
        notify(try owners.compactMap { try $0.optional(0) })
        record(.changed([victim], .waiting))
    }

    /// Ends the waits of the sessions that one session has displaced. They then start before sessions without priority.
    ///
    /// - Parameter id: The session that has displaced the others.
    package func restoreDisplaced(by id: SessionID) throws {
        let rows = try link.query(
            "UPDATE session SET displaced_by = NULL, lane = least(lane, 2) WHERE displaced_by = $1 RETURNING id", ["\(id)"])
        if !rows.isEmpty { notify() }
    }

    /// An SQL condition for displaced sessions whose preemptor no member has, and no live member may run.
    static let isStranded = """
        displaced_by IS NOT NULL AND NOT EXISTS (
            SELECT FROM session AS preemptor WHERE preemptor.id = session.displaced_by AND (preemptor.owner IS NOT NULL
                OR \(FleetPlace.liveMemberMayRun("preemptor"))))
        """

    /// Ends the waits of displaced sessions whose preemptor can't run, for example because the only member that may run the preemptor has died.
    func restoreStranded() throws {
        let rows = try link.query(
            "UPDATE session SET displaced_by = NULL, lane = least(lane, 2) WHERE \(Self.isStranded) RETURNING id")
        if !rows.isEmpty { notify() }
    }
}
