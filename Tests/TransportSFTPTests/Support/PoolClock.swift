import Locking
import Logging
import TransferCore
import TransportSFTP

/// The time of a pool of connections, which is ahead of the system's by what a test says.
final class PoolClock: Sendable {
    private struct Sleeper {
        let number: Int
        let duration: Duration
        /// By how much the time has to be ahead.
        let end: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var ahead = Duration.zero
        var lastNumber = 0
        var sleepers: [Sleeper] = []
    }

    private let state = Locked(State())

    /// The default policy by this time.
    var policy: PoolPolicy {
        var policy = PoolPolicy()
        policy.now = { .now + self.state.withLock { $0.ahead } }
        policy.sleep = { try await self.sleep($0) }
        return policy
    }

    /// Lets time pass.
    func advance(by duration: Duration) {
        let awake = state.withLock { state in
            state.ahead += duration
            let ahead = state.ahead
            defer { state.sleepers.removeAll { $0.end <= ahead } }
            return state.sleepers.filter { $0.end <= ahead }
        }
        for sleeper in awake { sleeper.continuation.resume() }
    }

    /// How many sleep for so long now.
    func sleepers(for duration: Duration) -> Int {
        state.withLock { $0.sleepers.count { $0.duration == duration } }
    }

    /// Returns once somebody sleeps for so long.
    func waitForSleeper(for duration: Duration) async {
        while sleepers(for: duration) == 0 { await Task.yield() }
    }

    private func sleep(_ duration: Duration) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    // Whoever cancels comes after this, or is seen here.
                    if Task.isCancelled { return true }
                    state.sleepers.append(
                        Sleeper(number: number, duration: duration, end: state.ahead + duration, continuation: continuation))
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let index = state.sleepers.firstIndex { $0.number == number }
                return index.map { state.sleepers.remove(at: $0) }
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}

/// Connects as a test says.
final class TestConnector: SFTPConnector {
    private let count = Locked(0)
    private let make: @Sendable (Int) async throws -> any SFTPLink

    /// - Parameter make: Gets the number of the connection, from 0.
    init(_ make: @escaping @Sendable (Int) async throws -> any SFTPLink) {
        self.make = make
    }

    /// How many connections were asked for.
    var attempts: Int { count.withLock { $0 } }

    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
        let number = count.withLock { count in
            defer { count += 1 }
            return count
        }
        return try await make(number)
    }
}
