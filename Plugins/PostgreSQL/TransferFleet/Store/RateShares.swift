/// A member's shares of the rate limits. Each limit is divided evenly among the members that use it. A member uses the fleet's limit while
/// the member has a session that is not paused, and an account's limit while the member has such a session of the account.
package struct RateShares: Sendable, Equatable {
    /// The member's share of the fleet's limit, in bytes per second; nil if the fleet has no limit.
    package var fleet: Int64?
    /// The member's shares of the limits of the accounts that the member uses; nil for an account without a limit.
    package var accounts: [String: Int64?] = [:]

    package init(fleet: Int64? = nil, accounts: [String: Int64?] = [:]) {
        self.fleet = fleet
        self.accounts = accounts
    }

    /// The share of one member.
    ///
    /// - Parameters:
    ///   - users: The number of members that use the limit, including this one.
    ///   - rank: The number of these members before this one, by name. The first members get the remainder, so the sum of all shares is the
    ///     limit, unless the limit is less than one byte per member.
    static func share(of limit: Int64, users: Int64, rank: Int64) -> Int64 {
        let (share, remainder) = limit.quotientAndRemainder(dividingBy: max(1, users))
        return max(1, share + (rank < remainder ? 1 : 0))
    }
}

extension PostgresLink {
    /// Divides the rate limits among the members that use them now, and returns the shares of one member. If all sessions of this member are paused,
    /// returns the shares that the member will have once a session resumes. Counts members only if there is a limit.
    func rateShares(of member: String) throws -> RateShares {
        let rows = try query(
            """
            SELECT limits.account, limits.rate, users.n, users.rank
            FROM (SELECT NULL::text AS account, rate_limit AS rate FROM fleet
                UNION ALL SELECT name, rate_limit FROM account WHERE name IN (SELECT account FROM session WHERE owner = $1)) AS limits
            CROSS JOIN LATERAL (
                SELECT count(DISTINCT owner) AS n, count(DISTINCT owner) FILTER (WHERE owner < $1) AS rank FROM session
                WHERE limits.rate IS NOT NULL AND owner IS NOT NULL AND (state <> 'paused' OR owner = $1)
                    AND lease_until > clock_timestamp() AND (limits.account IS NULL OR session.account = limits.account)) AS users
            """, [member])
        var shares = RateShares()
        for row in rows {
            let (users, rank) = (try row.integer(2), try row.integer(3))
            let share = try row.optionalInteger(1).map { RateShares.share(of: $0, users: users, rank: rank) }
            if let account = try row.optional(0) { shares.accounts.updateValue(share, forKey: account) } else { shares.fleet = share }
        }
        return shares
    }
}
