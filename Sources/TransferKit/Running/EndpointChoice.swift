import TransferCore

/// Which of an account's endpoints a run uses: the preferred one that this process has a transport for, and the next one after that could not
/// be reached.
final class EndpointChoice: Sendable {
    private struct State: Sendable {
        var account: Account
        var endpoints: [Endpoint]
        var index = 0
        /// How many endpoints were given up since the last success: after all of them, the order begins again.
        var failed = 0
    }

    private let transports: Set<TransportID>
    private let state: Locked<State>

    init(_ account: Account, transports: Set<TransportID>) {
        self.transports = transports
        state = Locked(State(account: account, endpoints: account.endpoints.filter { transports.contains($0.transport) }))
    }

    var account: Account { state.withLock { $0.account } }

    var current: Endpoint? {
        state.withLock { $0.endpoints.isEmpty ? nil : $0.endpoints[$0.index] }
    }

    var hasNext: Bool { state.withLock { $0.failed + 1 < $0.endpoints.count } }

    /// Begins anew with the first endpoint if the account was edited.
    func follow(_ account: Account) {
        state.withLock { state in
            guard account != state.account else { return }
            state = State(account: account, endpoints: account.endpoints.filter { transports.contains($0.transport) })
        }
    }

    func advance() {
        state.withLock {
            $0.index = ($0.index + 1) % $0.endpoints.count
            $0.failed += 1
        }
    }

    func succeeded() {
        state.withLock { $0.failed = 0 }
    }
}
