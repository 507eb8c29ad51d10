import TransferCore
public import TransferKit

/// The accounts of a fleet, which all members share. Credentials are references that each member resolves for itself.
extension Fleet {
    /// Like `TransferQueue.accounts()`.
    public func accounts() async throws -> [AccountStatus] { try await accounts(where: "true", []) }

    /// Like `TransferQueue.account(_:)`.
    public func account(_ name: String) async throws -> AccountStatus? { try await accounts(where: "account.name = $1", [name]).first }

    private func accounts(where condition: String, _ values: [String?]) async throws -> [AccountStatus] {
        try await store.unlocked { link in
            try link.query(
                """
                SELECT definition, (SELECT count(*) FROM session WHERE session.account = account.name AND NOT is_removed),
                    CASE WHEN EXISTS (SELECT FROM member WHERE live_until > clock_timestamp()) AND NOT EXISTS (
                            SELECT FROM member WHERE live_until > clock_timestamp() AND NOT EXISTS (
                                SELECT FROM refusal WHERE refusal.account = account.name AND refusal.member = member.name))
                        THEN (SELECT error FROM refusal WHERE refusal.account = account.name LIMIT 1) END,
                    account.name
                FROM account WHERE \(condition) ORDER BY name
                """, values
            ).map { row in
                var problem: TransferError?
                let account = try row.readable(Account.self, 0, &problem)
                let refusal = try row.readable(TransferError.self, 2, &problem)
                var status = AccountStatus(
                    of: try account ?? Account(row.text(3), endpoints: []), blockingError: problem ?? refusal,
                    sessions: Int(clamping: try row.integer(1)))
                status.currentRateLimit = status.account.rateLimit
                return status
            }
        }
    }

    /// Like `TransferQueue.save(_:)`.
    public func save(_ account: Account) async throws {
        _ = try await save(account, if: nil)
    }

    /// Like `TransferQueue.save(_:replacing:)`.
    public func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try await save(account) { $0 == previous }
    }

    /// Saves an account, and lets all members use it again.
    ///
    /// - Parameter condition: Whether to save, given the stored account; nil to save always, even if the stored account can't be read.
    /// - Returns: Whether the account was saved.
    private func save(_ account: Account, if condition: (@Sendable (Account?) -> Bool)?) async throws -> Bool {
        try account.validate()
        guard account.timetable == nil else { throw QueueError.timetableInFleet }
        for endpoint in account.endpoints {
            for reference in endpoint.credentials {
                guard case .memory = reference.source else { continue }
                throw QueueError(.invalidAccount, "The members of a fleet read the credentials, so use a file or an environment variable.")
            }
        }
        return try await store.locked { transaction in
            if let condition {
                let row = try transaction.link.query("SELECT definition FROM account WHERE name = $1", [account.name]).first
                guard condition(try row.map { try $0.json(Account.self, 0) }) else { return false }
            }
            try write(account, transaction)
            try unblock(account.name, transaction)
            return true
        }
    }

    /// Changes an account. A member that has refused the account still does not use it; see ``unblockAccount(_:)``.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `noSuchAccount`.
    func change(_ name: String, _ body: @Sendable (inout Account) -> Void) async throws {
        try await store.locked { transaction in
            let row = try transaction.link.query("SELECT definition FROM account WHERE name = $1", [name]).first
            guard let row else { throw QueueError.noAccount(name) }
            var account = try row.json(Account.self, 0)
            body(&account)
            try write(account, transaction)
        }
    }

    private func write(_ account: Account, _ transaction: FleetTransaction) throws {
        try transaction.link.query(
            """
            INSERT INTO account(name, definition, max_sessions, rate_limit) VALUES ($1, $2, $3, $4)
            ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, max_sessions = excluded.max_sessions,
                rate_limit = excluded.rate_limit
            """,
            [
                account.name, try PostgresValue.json(account), account.maxConcurrentSessions.map { "\($0)" },
                account.rateLimit.map { "\($0)" },
            ])
        transaction.record(.limitsChanged)
    }

    /// Like `TransferQueue.deleteAccount(_:cascades:)`.
    public func deleteAccount(_ name: String, cascades: Bool) async throws {
        if cascades { _ = try await apply(.remove(isForced: true), to: .account(name)) }
        // The row of a removed session refers to the account until the row is deleted.
        while try await store.locked({ try $0.deleteRemoved() }) {}
        try await store.locked { transaction in
            let count = try transaction.link.query("SELECT 1 FROM session WHERE account = $1", [name]).count
            guard count == 0 else {
                throw QueueError(
                    .accountInUse,
                    "Cannot remove the account \"\(name)\": \(count == 1 ? "1 session refers" : "\(count) sessions refer") to it. Remove its sessions first, or wait until members have stopped them."
                )
            }
            guard try transaction.link.query("DELETE FROM account WHERE name = $1 RETURNING 1", [name]).first != nil else {
                throw QueueError.noAccount(name)
            }
        }
    }

    /// Like `TransferQueue.unblockAccount(_:)`.
    public func unblockAccount(_ name: String) async throws {
        try await store.locked { try unblock(name, $0) }
    }

    /// Like ``unblockAccount(_:)``. Each member keeps its own state of the account's endpoints. A member with a session of the account
    /// probes unavailable endpoints immediately. Other members do so when they next take a session of the account.
    public func retryEndpoints(of account: String) async throws { try await unblockAccount(account) }

    /// Lets all members use an account again. The account's row stores the number of calls, so a member also reacts to a call whose
    /// notification was lost.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `noSuchAccount`.
    private func unblock(_ name: String, _ transaction: FleetTransaction) throws {
        let row = try transaction.link.query(
            """
            UPDATE account SET retries = retries + 1 WHERE name = $1 RETURNING (
                SELECT coalesce(json_agg(DISTINCT owner), '[]') FROM session WHERE session.account = account.name AND owner IS NOT NULL)
            """, [name]
        ).first
        guard let row else { throw QueueError.noAccount(name) }
        let refusals = try transaction.link.query("DELETE FROM refusal WHERE account = $1 RETURNING 1", [name])
        if !refusals.isEmpty { transaction.record(.accountUnblocked(account: name)) }
        transaction.notify(try row.json([String].self, 0))
        transaction.notify()
    }
}
