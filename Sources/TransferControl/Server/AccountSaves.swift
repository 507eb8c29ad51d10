/// Lets accounts be compared and saved one after the other, so that nobody saves what another one has just changed.
actor AccountSaves {
    static let shared = AccountSaves()

    private var last: Task<Void, Never>?

    /// Does something once all that came before is done.
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
