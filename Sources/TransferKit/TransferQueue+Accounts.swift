import Logging
import TransferCore

extension TransferQueue {
    /// Adds an account, or replaces the one of the same name and lifts its block. Waiting sessions and later attempts see the change.
    ///
    /// Its endpoints are checked by their transports, as far as this process has them; see `EndpointValidating`. An account that no transport of
    /// this process serves is saved with a warning in the log.
    ///
    /// - Throws: ``QueueError`` with the code `invalidAccount`; nothing is changed then.
    public nonisolated func save(_ account: Account) async throws {
        try account.validate()
        for endpoint in account.endpoints {
            guard let transport = transports[endpoint.transport] as? any EndpointValidating else { continue }
            do {
                try transport.validate(endpoint)
            } catch {
                throw QueueError(.invalidAccount, "The account \"\(account.name)\" can't be saved. \(error.message)")
            }
        }
        try await mailbox.send(.command(.saveAccount(account)))
        warn(ofMissingTransports: [account])
    }

    /// Logs a warning for each account that no transport of this process serves: its sessions wait for a person.
    nonisolated func warn(ofMissingTransports accounts: [Account]) {
        for account in accounts where !account.endpoints.contains(where: { transports[$0.transport] != nil }) {
            let names = Set(account.endpoints.map { "\($0.transport)" }).sorted().joined(separator: ", ")
            configuration.logger.warning(
                "No transport of this process serves the account \"\(account.name)\". Register one, or change the account: until then its sessions wait.",
                metadata: ["account": "\(account.name)", "transports": "\(names)"])
        }
    }

    /// As ``warn(ofMissingTransports:)``, of the accounts that sessions refer to.
    func warnOfMissingTransports() async {
        await settle()
        let used = scheduler.accounts.filter { scheduler.roster.sessionsOfAccount[$0.key] ?? 0 > 0 }.values.map(\.account)
        warn(ofMissingTransports: used.sorted { $0.name < $1.name })
    }

    /// Removes an account.
    ///
    /// - Parameter cascades: Whether the sessions that refer to it are removed with it; otherwise they are a reason to refuse. More than 10,000
    ///   are removed in several transactions, each durable by itself, and the account with the last of them.
    /// - Throws: ``QueueError`` with the code `noSuchAccount` or `accountInUse`, or `hasDependents` while sessions of other accounts come after
    ///   one of these.
    public nonisolated func deleteAccount(_ name: String, cascades: Bool = false) async throws {
        if cascades, await account(name)?.sessions ?? 0 > Self.groupSize { try await remove(.account(name)) }
        try await mailbox.send(.command(.deleteAccount(name: name, cascade: cascades)))
    }

    /// Lets the sessions of a blocked account start again. On an account that is not blocked: nothing.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`.
    public nonisolated func unblockAccount(_ name: String) async throws {
        try await mailbox.send(.command(.unblockAccount(name: name)))
    }

    /// Asks the endpoints of an account once more that are left alone, because they failed too often or asked for it: one session that waits
    /// finds out for all. So do ``run(_:again:)-(SessionReference,_)``, ``retry(_:)-(SessionReference)``, ``unblockAccount(_:)``, ``save(_:)``,
    /// and a network that came back. On endpoints that may be asked: nothing.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`.
    public nonisolated func retryEndpoints(of name: String) async throws {
        try await mailbox.send(.command(.retryEndpoints(account: name)))
    }

    /// All accounts, by name.
    public func accounts() async -> [AccountStatus] {
        await settle()
        return scheduler.accounts.keys.compactMap { status(of: $0) }.sorted { $0.account.name < $1.account.name }
    }

    /// One account; nil if there is none of that name.
    public func account(_ name: String) async -> AccountStatus? {
        await settle()
        return scheduler.accountKeys[name].flatMap { status(of: $0) }
    }

    private func status(of key: AccountKey) -> AccountStatus? {
        scheduler.accounts[key].map {
            AccountStatus(account: $0.account, block: $0.block, sessions: scheduler.roster.sessionsOfAccount[key] ?? 0)
        }
    }
}
