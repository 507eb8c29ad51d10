import TransferCore

/// Which of an account's endpoints a run uses: the preferred one that this process has a transport for, and the next one after that could not
/// be reached.
final class EndpointChoice: Sendable {
    private struct State: Sendable {
        var index = 0
        /// How many endpoints were given up since the last success: after all of them, the order begins again.
        var failed = 0
    }

    private let endpoints: [Endpoint]
    private let state = Locked(State())

    init(_ account: Account, transports: Set<TransportID>) {
        endpoints = account.endpoints.filter { transports.contains($0.transport) }
    }

    var current: Endpoint? {
        endpoints.isEmpty ? nil : endpoints[state.withLock { $0.index }]
    }

    var hasNext: Bool { state.withLock { $0.failed + 1 < endpoints.count } }

    func advance() {
        state.withLock {
            $0.index = ($0.index + 1) % endpoints.count
            $0.failed += 1
        }
    }

    func succeeded() {
        state.withLock { $0.failed = 0 }
    }
}
