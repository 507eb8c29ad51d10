extension TransferQueue {
    /// Adds an account, or replaces the one of the same name and lifts its block. Waiting sessions and later attempts see the change.
    ///
    /// - Throws: ``QueueError`` with the code `invalidAccount`; nothing is changed then.
    public nonisolated func save(_ account: Account) async throws {
        try account.validate()
        try await mailbox.send(.command(.saveAccount(account)))
    }

    /// Removes an account that no session refers to.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount` or `accountInUse`.
    public nonisolated func deleteAccount(_ name: String) async throws {
        try await mailbox.send(.command(.deleteAccount(name: name)))
    }

    /// Lets the sessions of a blocked account start again. On an account that is not blocked: nothing.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`.
    public nonisolated func unblockAccount(_ name: String) async throws {
        try await mailbox.send(.command(.unblockAccount(name: name)))
    }

    /// All accounts, by name.
    public func accounts() async -> [AccountStatus] {
        await settle()
        return scheduler.accounts.values
            .map { AccountStatus(account: $0.account, block: $0.block, sessions: $0.sessions) }
            .sorted { $0.account.name < $1.account.name }
    }

    /// One account; nil if there is none of that name.
    public func account(_ name: String) async -> AccountStatus? {
        await accounts().first { $0.account.name == name }
    }
}
