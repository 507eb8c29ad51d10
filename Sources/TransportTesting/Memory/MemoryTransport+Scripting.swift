import Locking
public import TransferCore

extension MemoryTransport {
    /// Makes future attempts fail before their first byte.
    ///
    /// - Parameters:
    ///   - count: The number of attempts.
    ///   - error: The error of each attempt.
    ///   - path: The remote name of the file, or nil for any file.
    public func failNext(_ count: Int = 1, with error: TransferError, for path: String? = nil) {
        faults.append(.fail(error), for: path, times: count)
    }

    /// Creates a closed gate, which holds attempts for a file until the gate opens or the attempts are cancelled.
    ///
    /// - Parameters:
    ///   - path: The remote name.
    ///   - position: The position in the file at which attempts stop. By then, the bytes before this position have arrived, and any due checkpoint
    ///     is saved. If the position is the file's size, attempts stop before they complete the file.
    public func gate(_ path: String, atByte position: Int64 = 0) -> MemoryGate {
        let gate = MemoryGate(path: path, position: position)
        state.withLock { $0.gates.append(gate) }
        return gate
    }

    /// Makes a host refuse connections.
    ///
    /// - Parameters:
    ///   - host: The host in the addresses of endpoints.
    ///   - error: The error that attempts throw; nil for a refused connection (``/TransferCore/FailureClass/unreachable``).
    public func refuse(host: String, with error: TransferError? = nil) {
        state.withLock {
            $0.refusedHosts[host] =
                error ?? TransferError(.unreachable, .connectionRefused, "\(host) refused the connection. Check whether it is running.")
        }
    }

    /// Makes a host accept connections again.
    public func accept(host: String) {
        state.withLock { $0.refusedHosts[host] = nil }
    }

    /// Returns an endpoint of this transport, with the address `memory://host/`. Any host name works.
    public func endpoint(host: String = "memory", credentials: [CredentialReference] = []) -> Endpoint {
        Endpoint(transport: id, address: "memory://\(host)/", credentials: credentials)
    }

    /// Waits until all gates at a position are open.
    func pass(_ path: String, at position: Int64) async throws {
        while let gate = closedGates(of: path).first(where: { $0.position == position }) {
            try await gate.waitUntilOpen()
        }
    }

    /// Returns the position of the next closed gate after a position; `.max` if there is no such gate.
    func nextGate(_ path: String, after position: Int64) -> Int64 {
        closedGates(of: path).map(\.position).filter { $0 > position }.min() ?? .max
    }

    private func closedGates(of path: String) -> [MemoryGate] {
        state.withLock { state in
            state.gates.removeAll(where: \.isOpen)
            return state.gates.filter { $0.path == path }
        }
    }
}
