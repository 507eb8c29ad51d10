import Logging
import TransferCore

extension TransferQueue {
    /// Adds an account, or replaces the account with the same name and unblocks it. Waiting sessions and later attempts use the new definition.
    ///
    /// Transports that are registered in this process validate the account's endpoints; see `EndpointValidating`. If no registered transport serves
    /// the account, the queue saves the account and logs a warning.
    ///
    /// - Throws: ``QueueError``, including the code `invalidAccount`, and `invalidRequest` for an invalid timetable. After an error, nothing is
    ///   changed.
    public nonisolated func save(_ account: Account) async throws {
        try check(account)
        try await mailbox.send(.command(.saveAccount(account)))
        warn(ofMissingTransports: [account])
    }

    /// Adds or replaces an account unless it has changed since the caller read it. The comparison and the save are one atomic step.
    ///
    /// - Parameters:
    ///   - account: The account to save.
    ///   - previous: The account as the caller read it; nil if no account had the name.
    /// - Returns: Whether the account was saved. If false, the account in the queue has changed: read it again.
    /// - Throws: The errors of ``save(_:)``.
    public nonisolated func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try check(account)
        guard try await mailbox.send(.command(.replaceAccount(previous, with: account))).isGranted else { return false }
        warn(ofMissingTransports: [account])
        return true
    }

    private nonisolated func check(_ account: Account) throws {
        try account.validate()
        for endpoint in account.endpoints {
            guard let transport = transports[endpoint.transport] as? any EndpointValidating else { continue }
            do {
                try transport.validate(endpoint)
            } catch {
                throw QueueError(.invalidAccount, "Cannot save the account \"\(account.name)\". \(error.message)")
            }
        }
    }

    /// Logs a warning for each account that no transport of this process serves. The sessions of such an account wait until the app or the user acts.
    nonisolated func warn(ofMissingTransports accounts: [Account]) {
        for account in accounts where !account.endpoints.contains(where: { transports[$0.transport] != nil }) {
            let names = Set(account.endpoints.map { "\($0.transport)" }).sorted().joined(separator: ", ")
            configuration.logger.warning(
                "No transport is registered for the endpoints of the account \"\(account.name)\". Its sessions wait until you register one or change the account.",
                metadata: ["account": "\(account.name)", "transports": "\(names)"])
        }
    }

    func warnOfMissingTransports() async {
        await waitForEarlierInputs()
        let used = scheduler.accounts.filter { scheduler.sessionIndex.sessionsOfAccount[$0.key] ?? 0 > 0 }.values.map(\.account)
        warn(ofMissingTransports: used.sorted { $0.name < $1.name })
    }

    /// Removes an account.
    ///
    /// - Parameters:
    ///   - name: The name of the account.
    ///   - cascades: Whether to also remove the sessions that refer to the account. If false, and such sessions exist, the call throws
    ///     `accountInUse`. If there are more than 10,000 such sessions, they are removed in several transactions, before the account.
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, `accountInUse`, or, if sessions of other accounts depend on sessions of this
    ///   account, `hasDependents`.
    public nonisolated func deleteAccount(_ name: String, cascades: Bool = false) async throws {
        if cascades, await account(name)?.sessions ?? 0 > Self.groupSize { try await apply(.remove(), to: .account(name)) }
        try await mailbox.send(.command(.deleteAccount(name: name, cascade: cascades)))
    }

    /// Unblocks an account, so that its sessions can start again. Also has the effect of ``retryEndpoints(of:)``.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`.
    public nonisolated func unblockAccount(_ name: String) async throws {
        try await mailbox.send(.command(.unblockAccount(name: name)))
    }

    /// Probes the unavailable endpoints of an account immediately. An endpoint is unavailable after too many consecutive failures, for
    /// example in an outage, or if the server asked clients to back off.
    ///
    /// To probe an endpoint, one session tries it on behalf of all sessions. Sessions of the account that wait for a retry skip the remaining delay,
    /// even if the server requested the delay. So do files that wait while other files of their session are in flight. The call does not affect
    /// available endpoints.
    ///
    /// ``unblockAccount(_:)``, ``save(_:)``, ``ControllableQueue/run(_:again:)`` and ``ControllableQueue/retry(_:)`` have the same effect on the
    /// endpoints. ``unblockAccount(_:)`` also ends the sessions' delays, as does a ``save(_:)`` that changes the endpoints or unblocks the
    /// account. When the network condition changes to any value but `unavailable`, the sessions of all accounts skip their delays, but the queue
    /// probes only endpoints that did not ask clients to back off.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`.
    public nonisolated func retryEndpoints(of name: String) async throws {
        try await mailbox.send(.command(.retryEndpoints(account: name)))
    }

    /// All accounts, sorted by name.
    public func accounts() async -> [AccountStatus] {
        await waitForEarlierInputs()
        return scheduler.accounts.keys.compactMap { status(of: $0) }.sorted { $0.account.name < $1.account.name }
    }

    /// The account with the given name; nil if it does not exist.
    public func account(_ name: String) async -> AccountStatus? {
        await waitForEarlierInputs()
        return scheduler.accountKeys[name].flatMap { status(of: $0) }
    }

    private func status(of key: AccountKey) -> AccountStatus? {
        let now = configuration.clock.moment
        return scheduler.accounts[key].map {
            AccountStatus(
                account: $0.account, blockingError: $0.block?.error, sessions: scheduler.sessionIndex.sessionsOfAccount[key] ?? 0,
                currentRateLimit: configuration.clock.currentLimit($0.account.rateLimit, $0.account.timetable),
                unavailableEndpoints: scheduler.unavailableEndpoints(of: $0.account, at: now))
        }
    }
}
