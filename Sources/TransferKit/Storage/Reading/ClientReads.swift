import Locking

/// A limit for the concurrent reads of apps and other clients, which leaves database connections free for the queue's own reads.
package final class ClientReads: Sendable {
    private struct State: Sendable {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// The maximum number of concurrent reads: two fewer than the database connections for reading.
    static let limit = 2

    private let state: Locked<State>

    package init(limit: Int) {
        state = Locked(State(free: limit))
    }

    /// Runs a client's read. Waits while the maximum number of reads is running.
    package func run<Value>(_ body: () async throws -> sending Value) async rethrows -> sending Value {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
        defer { end() }
        return try await body()
    }

    private func end() {
        let next: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
