package import TransferCore
package import TransferKit

/// Records the accounts that a member can't use, and the sessions that it can't run. The member leaves these sessions to other members.
extension FleetTransaction {
    /// Records that a member can't use an account. If no live member can use the account, reports the account as blocked.
    func refuse(_ account: String, error: TransferError, by member: String) throws {
        try link.query(
            "INSERT INTO refusal(account, member, error) VALUES ($1, $2, $3) ON CONFLICT (account, member) DO UPDATE SET error = excluded.error",
            [account, member, try PostgresValue.json(error)])
        let isBlocked = try link.query(
            """
            SELECT NOT EXISTS (SELECT FROM member WHERE live_until > clock_timestamp()
                AND NOT EXISTS (SELECT FROM refusal WHERE refusal.account = $1 AND refusal.member = member.name))
            """, [account]
        ).first?.flag(0)
        if isBlocked == true { record(.accountBlocked(account: account, error)) }
    }

    /// Gives back a session that its owner can't run, if another live member may run it.
    ///
    /// - Parameter error: The reason, which ``WaitReason`` shows until a member takes the session.
    /// - Returns: Whether the session was given back. False if no other live member may run it, or the lease has ended.
    package func passOn(
        _ lease: LeaseReference, from member: String, error: TransferError, statistics: SessionStatistics? = nil
    ) throws -> Bool {
        let row = try link.query(
            """
            SELECT \(FleetPlace.liveMemberMayRun("session", otherThan: "$3")) FROM session
            WHERE id = $1 AND lease_epoch = $2 AND lease_until > clock_timestamp()
            """, ["\(lease.id)", "\(lease.epoch)", member]
        ).first
        guard let row, try row.flag(0) else { return false }
        // This statement stores nothing for an evicted member, which is no longer in the table.
        try link.query(
            """
            INSERT INTO session_refusal(session, member, error) SELECT $1::uuid, name, $3::text FROM member WHERE name = $2
            ON CONFLICT (session, member) DO UPDATE SET error = excluded.error
            """, ["\(lease.id)", member, try PostgresValue.json(error)])
        notify()
        return try giveBack(lease, statistics: statistics, isInterrupted: false, error: error)
    }

    /// Lets all members try a session again.
    func forgetRefusals(of id: SessionID) throws {
        try link.query("DELETE FROM session_refusal WHERE session = $1", ["\(id)"])
    }
}
