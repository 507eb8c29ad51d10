import Locking
import TransferCore

/// The connections with requests in progress. When the server stops, it interrupts these requests.
final class OpenRequests: Sendable {
    private let state = Locked(State())

    private struct State {
        var isStopping = false
        var connections: [ObjectIdentifier: Connection] = [:]
    }

    func insert(_ connection: Connection) throws(ConnectionEnded) {
        let isStopping = state.withLock { state in
            if !state.isStopping { state.connections[ObjectIdentifier(connection)] = connection }
            return state.isStopping
        }
        if isStopping { throw ConnectionEnded() }
    }

    func remove(_ connection: Connection) {
        state.withLock { $0.connections[ObjectIdentifier(connection)] = nil }
    }

    /// Interrupts all current requests. Later calls of ``insert(_:)`` throw an error.
    func stop() {
        let open = state.withLock { state in
            state.isStopping = true
            return Array(state.connections.values)
        }
        for connection in open { connection.interrupt(for: .serverShutdown) }
    }
}
