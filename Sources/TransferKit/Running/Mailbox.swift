import TransferCore

/// Where everything that may change the queue waits for the one writer. Inputs are taken in the order in which they were put in, from any
/// thread; all that wait together share one transaction.
final class Mailbox: Sendable {
    struct Envelope: Sendable {
        let input: Input
        /// Told once the input's effect is durable, or why it has none.
        let reply: (@Sendable (Result<Answer, QueueError>) -> Void)?
    }

    private struct State: Sendable {
        var envelopes: [Envelope] = []
        var refusesCommands = false
        var isClosed = false
    }

    private let state = Locked(State())
    private let bell: AsyncStream<Void>.Continuation
    /// Rings when something was put in; the one writer listens.
    let rings: AsyncStream<Void>

    init() {
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Puts an input in, without waiting for it.
    func post(_ input: Input) {
        put(Envelope(input: input, reply: nil))
    }

    /// Puts an input in, and returns when its effect is durable.
    @discardableResult
    func send(_ input: Input) async throws(QueueError) -> Answer {
        let result: Result<Answer, QueueError> = await withCheckedContinuation { continuation in
            put(Envelope(input: input) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }

    private func put(_ envelope: Envelope) {
        let isTaken = state.withLock { state in
            if state.isClosed { return false }
            if state.refusesCommands, case .command = envelope.input { return false }
            state.envelopes.append(envelope)
            // Under the lock, so that no envelope comes after the last ring.
            bell.yield()
            return true
        }
        if !isTaken { envelope.reply?(.failure(QueueError(.shutDown, "The queue was shut down."))) }
    }

    /// Takes all that waits.
    func take() -> [Envelope] {
        state.withLock { state in
            defer { state.envelopes = [] }
            return state.envelopes
        }
    }

    /// Puts what the store refused back, before all that came since, to be taken at the next ring.
    func putBack(_ envelopes: [Envelope]) {
        state.withLock { $0.envelopes.insert(contentsOf: envelopes, at: 0) }
    }

    /// Refuses commands from now on; what runs tell is still taken.
    func refuseCommands() {
        state.withLock { $0.refusesCommands = true }
    }

    /// Refuses everything from now on; what waits is still taken.
    func close() {
        state.withLock { state in
            state.isClosed = true
            bell.finish()
        }
    }
}
