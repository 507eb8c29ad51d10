import Locking
import TransferCore

/// Limits the number of small files (at most 1 MiB) of a session that make requests concurrently, and adapts the limit to the network and
/// the server. Further prepared files wait for their turn.
///
/// A file waits for its turn only when its transport saves the first checkpoint. This machine can therefore prepare files while other files
/// wait for responses.
package final class RequestTurns: Sendable {
    private struct State: Sendable {
        /// The address of the endpoint that the next file prefers; nil if no limit applies.
        var address: String?
        /// The adapted limits, by the address of the endpoint.
        var concurrency: [String: FileConcurrency] = [:]
        var reachesLimit = false
        /// For the files in flight, by position: the endpoint, and the uptime at which the file could begin its requests.
        var began: [Int64: (address: String, uptime: Duration)] = [:]
        /// The positions of the files whose turn it is.
        var active: Set<Int64> = []
        var waiting: [Int: (position: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var nextTicket = 0

        var limit: Int { address.flatMap { concurrency[$0]?.limit } ?? .max }

        /// Gives turns to waiting files in the order of the session, as far as the limit allows. Returns their continuations.
        mutating func admit() -> [CheckedContinuation<Void, any Error>] {
            guard !waiting.isEmpty else { return [] }
            var admitted: [CheckedContinuation<Void, any Error>] = []
            for (ticket, waiter) in waiting.sorted(by: { ($0.value.position, $0.key) < ($1.value.position, $1.key) }) {
                guard tryToGiveTurn(to: waiter.position) else { break }
                waiting[ticket] = nil
                admitted.append(waiter.continuation)
            }
            return admitted
        }

        /// Gives a file its turn if the limit allows it. Returns whether the file has its turn.
        mutating func tryToGiveTurn(to position: Int64) -> Bool {
            guard active.contains(position) || active.count < limit else { return false }
            active.insert(position)
            return true
        }
    }

    private let clock: EngineClock
    private let state = Locked(State())

    package init(clock: EngineClock = .system) {
        self.clock = clock
    }

    /// Returns the maximum number of small files that may make requests to an endpoint concurrently. From now on, this limit applies to the
    /// turns of all files.
    ///
    /// - Parameter transport: The endpoint's transport; nil for no limit, because the app has set the number of files in flight.
    package func limit(at endpoint: Endpoint, of transport: (any Transport)?) -> Int {
        let (limit, admitted) = state.withLock { state in
            state.address = transport == nil ? nil : endpoint.address
            if let transport, state.concurrency[endpoint.address] == nil {
                state.concurrency[endpoint.address] = FileConcurrency(
                    initial: transport.smallFilesInFlight, maximum: min(transport.maximumSmallFilesInFlight, FileWindow.maximumFiles))
            }
            return (state.limit, state.admit())
        }
        for continuation in admitted { continuation.resume() }
        return limit
    }

    /// Records whether the session has another small file to start, so that the session can reach the limit.
    package func setReachesLimit(_ reachesLimit: Bool) {
        state.withLock { $0.reachesLimit = reachesLimit }
    }

    /// Records that a file may begin its requests now. If the file then waits for its turn, ``wait(for:)`` records a later time.
    ///
    /// - Parameter takesTurn: Whether the file takes a turn without waiting, because the file resumes.
    package func begin(_ position: Int64, at endpoint: Endpoint, takesTurn: Bool = false) {
        let now = clock.now()
        state.withLock { state in
            state.began[position] = (endpoint.address, now)
            if takesTurn { state.active.insert(position) }
        }
    }

    /// Waits for a file's turn, which lasts until ``end(_:_:)`` is called.
    ///
    /// - Throws: `CancellationError`.
    package func wait(for position: Int64) async throws {
        try await waitForTurn(position)
        let now = clock.now()
        state.withLock { $0.began[position]?.uptime = now }
    }

    private func waitForTurn(_ position: Int64) async throws {
        guard !state.withLock({ $0.tryToGiveTurn(to: position) }) else { return }
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let decided: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.tryToGiveTurn(to: position) { return .success(()) }
                    state.waiting[ticket] = (position, continuation)
                    return nil
                }
                if let decided { continuation.resume(with: decided) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: ticket) }?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Ends the turn of a file whose attempt is over.
    ///
    /// - Parameter outcome: The outcome to which the limit adapts; nil if the limit must not adapt to this attempt.
    package func end(_ position: Int64, _ outcome: FileConcurrency.Outcome? = nil) {
        let now = clock.now()
        let admitted = state.withLock { state in
            if let began = state.began.removeValue(forKey: position), let outcome {
                state.concurrency[began.address]?.fileEnded(
                    outcome, began: began.uptime, now: now, reachesLimit: state.reachesLimit && began.address == state.address)
            }
            state.active.remove(position)
            return state.admit()
        }
        for continuation in admitted { continuation.resume() }
    }

    package func isWaitingForTurn(_ position: Int64) -> Bool {
        state.withLock { state in state.waiting.values.contains { $0.position == position } }
    }
}
