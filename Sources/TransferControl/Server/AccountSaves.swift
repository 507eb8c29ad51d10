/// Serializes comparing and saving of accounts, so that no save overwrites a concurrent change.
actor AccountSaves {
    static let shared = AccountSaves()

    private var last: Task<Void, Never>?

    /// Runs the body after all earlier ones have finished.
    func inTurn<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
        let before = last
        let turn = Task {
            await before?.value
            return try await body()
        }
        last = Task { _ = await turn.result }
        return try await turn.value
    }
}
