import Locking
public import TransferCore

extension MemoryTransport {
    /// Makes attempts to come fail before their first byte.
    ///
    /// - Parameters:
    ///   - count: How many attempts.
    ///   - path: The remote name that they are for, or nil for whatever comes first.
    public func failNext(_ count: Int = 1, with error: TransferError, for path: String? = nil) {
        faults.append(.fail(error), for: path, times: count)
    }

    /// Closes a gate: attempts for a file are held there until it is opened, or they are cancelled.
    ///
    /// - Parameters:
    ///   - path: The remote name.
    ///   - position: How many bytes of the file are at the other end, and vouched for by a checkpoint if one was due, when an attempt is held.
    ///     With the file's size, an attempt is held before it says that it is complete.
    public func gate(_ path: String, atByte position: Int64 = 0) -> MemoryGate {
        let gate = MemoryGate(path: path, position: position)
        state.withLock { $0.gates.append(gate) }
        return gate
    }

    /// Makes a host refuse connections.
    ///
    /// - Parameter error: What attempts there fail with instead, before anything moves.
    public func refuse(host: String, with error: TransferError? = nil) {
        state.withLock {
            $0.refusedHosts[host] =
                error ?? TransferError(.unreachable, .connectionRefused, "\(host) refused the connection; see whether it runs.")
        }
    }

    /// Makes a host accept connections again.
    public func accept(host: String) {
        state.withLock { $0.refusedHosts[host] = nil }
    }

    /// An endpoint of this transport, with the address `memory://host/`. Every host exists.
    public func endpoint(host: String = "memory", credentials: [CredentialReference] = []) -> Endpoint {
        Endpoint(transport: id, address: "memory://\(host)/", credentials: credentials)
    }

    /// Waits at the gates of a position.
    func pass(_ path: String, at position: Int64) async throws {
        while let gate = closedGates(of: path).first(where: { $0.position == position }) {
            try await gate.pass()
        }
    }

    /// The position of the next gate, or `.max` if there is none.
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
