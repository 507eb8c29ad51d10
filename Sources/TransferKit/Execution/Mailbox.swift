import Locking
import TransferCore

/// The inputs that wait for the queue's writer. The writer handles them in the order in which they were added, from any thread. Inputs that
/// wait at the same time share one transaction.
package final class Mailbox: Sendable {
    package struct Envelope: Sendable {
        package let input: Input
        /// Receives the result once the input's effect is durable, or receives the error.
        package let reply: (@Sendable (Result<Answer, QueueError>) -> Void)?

        /// Whether the input itself changes nothing.
        var isTick: Bool {
            if case .tick = input { true } else { false }
        }
    }

    /// Whether the mailbox is closed and accepts no more inputs.
    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Returns when the writer has handled the inputs that wait.
    func tick() async {
        _ = try? await send(.tick)
    }

    private struct State: Sendable {
        var envelopes: [Envelope] = []
        /// The number of deferrable inputs that wait.
        var deferrableCount = 0
        /// The uptime at which the first deferrable input was added.
        var deferrableSince = Duration.zero
        var timer: Task<Void, Never>?
        var refusesCommands = false
        var isClosed = false
    }

    /// The number of deferrable inputs that share a transaction, and the longest time that a deferrable input waits for others.
    private static let groupSize = 64
    private static let groupDelay = Duration.milliseconds(20)

    private let state = Locked(State())
    private let bell: AsyncStream<Void>.Continuation
    /// Yields an element after an input was added; the writer listens.
    package let rings: AsyncStream<Void>

    package init() {
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds an input without waiting for its effect.
    package func post(_ input: Input) {
        put(Envelope(input: input, reply: nil))
    }

    /// Adds a deferrable input, which may wait up to 20 ms to share a transaction with others. Later inputs are handled after it.
    package func postDeferrable(_ input: Input, clock: EngineClock) {
        state.withLock { state in
            if state.isClosed { return }
            state.envelopes.append(Envelope(input: input, reply: nil))
            if state.deferrableCount == 0 { state.deferrableSince = clock.now() }
            state.deferrableCount += 1
            if state.deferrableCount == Self.groupSize { bell.yield() }
            guard state.timer == nil else { return }
            // The timer keeps running if its inputs are taken earlier. A new timer for each group would cost more than an unnecessary wake-up.
            state.timer = Task { [weak self] in
                var delay: Duration? = Self.groupDelay
                while let time = delay, (try? await clock.sleep(time)) != nil { delay = self?.timeIsOver(at: clock.now()) }
            }
        }
    }

    /// Wakes the writer if the oldest deferrable input has waited long enough.
    ///
    /// - Returns: The time until the next check; nil if the timer must end.
    private func timeIsOver(at now: Duration) -> Duration? {
        state.withLock { state in
            let left = Self.groupDelay - (now - state.deferrableSince)
            if state.deferrableCount > 0, left > .zero { return left }
            if state.deferrableCount > 0 { bell.yield() }
            state.timer = nil
            return nil
        }
    }

    /// Adds an input, and returns when its effect is durable.
    @discardableResult
    package func send(_ input: Input) async throws(QueueError) -> Answer {
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
            // Called with the lock held, so that a wake-up follows each input.
            bell.yield()
            return true
        }
        if !isTaken { envelope.reply?(.failure(QueueError(.shutDown, "The queue is shut down."))) }
    }

    /// The number of inputs that wait.
    var count: Int { state.withLock { $0.envelopes.count } }

    /// Removes and returns all inputs that wait.
    package func take() -> [Envelope] {
        state.withLock { state in
            defer { state.envelopes = [] }
            state.deferrableCount = 0
            return state.envelopes
        }
    }

    /// Returns inputs that the store refused to the front of the mailbox. They are handled at the next wake-up.
    package func putBack(_ envelopes: [Envelope]) {
        state.withLock { $0.envelopes.insert(contentsOf: envelopes, at: 0) }
    }

    /// Refuses commands from now on, but accepts run events.
    package func refuseCommands() {
        state.withLock { $0.refusesCommands = true }
    }

    /// Refuses all inputs from now on. Inputs that wait can still be taken.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            state.timer?.cancel()
            bell.finish()
        }
    }
}
