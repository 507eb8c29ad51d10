import Locking
import TransferCore

/// The first-in, first-out mailbox of the queue's writer. Any thread can add inputs, such as commands and run events. Inputs that wait at the
/// same time usually share one transaction.
package final class Mailbox: Sendable {
    package struct Envelope: Sendable {
        package let input: Input
        /// Receives the result once the input's effect is durable, or receives the error.
        package let reply: (@Sendable (Result<InputResult, QueueError>) -> Void)?

        /// Whether the input is a tick, which changes nothing itself but runs the writer. The reply shows that the writer has handled all
        /// earlier inputs, or keeps them pending because the database refuses changes.
        var isTick: Bool {
            if case .tick = input { true } else { false }
        }
    }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Waits until the writer has handled all inputs that were added before this call. Returns earlier if the mailbox is closed or the database
    /// refuses changes.
    func tick() async {
        _ = try? await send(.tick)
    }

    private struct State: Sendable {
        var envelopes: [Envelope] = []
        var deferrableCount = 0
        /// The uptime at which the first waiting deferrable input was added.
        var deferrableSince = Duration.zero
        var timer: Task<Void, Never>?
        var refusesCommands = false
        var isClosed = false
    }

    /// The number of waiting deferrable inputs at which the writer is woken immediately.
    private static let groupSize = 64
    /// The longest time that a deferrable input waits for other inputs.
    private static let groupDelay = Duration.milliseconds(20)

    private let state = Locked(State())
    private let wakeUpContinuation: AsyncStream<Void>.Continuation
    /// The stream that wakes the writer: it yields an element after inputs were added.
    package let wakeUps: AsyncStream<Void>

    package init() {
        (wakeUps, wakeUpContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds an input without waiting for its effect. Has no effect if the mailbox is closed, or for a command after ``refuseCommands()``.
    package func post(_ input: Input) {
        put(Envelope(input: input, reply: nil))
    }

    /// Adds a deferrable input, which may wait up to 20 ms to share a transaction with other inputs. The writer still handles all inputs in
    /// the order in which they were added. Has no effect if the mailbox is closed.
    package func postDeferrable(_ input: Input, clock: EngineClock) {
        state.withLock { state in
            if state.isClosed { return }
            state.envelopes.append(Envelope(input: input, reply: nil))
            if state.deferrableCount == 0 { state.deferrableSince = clock.now() }
            state.deferrableCount += 1
            if state.deferrableCount == Self.groupSize { wakeUpContinuation.yield() }
            guard state.timer == nil else { return }
            // If the writer takes the inputs before the timer fires, the timer keeps running. A new timer for each group of inputs would
            // cost more than an unnecessary wake-up.
            state.timer = Task { [weak self] in
                var delay: Duration? = Self.groupDelay
                while let time = delay, (try? await clock.sleep(time)) != nil { delay = self?.timerFired(at: clock.now()) }
            }
        }
    }

    /// Wakes the writer if the oldest deferrable input has waited long enough.
    ///
    /// - Returns: The time until the next check; nil if no deferrable input waits or the writer was woken, so the timer ends.
    private func timerFired(at now: Duration) -> Duration? {
        state.withLock { state in
            let remaining = Self.groupDelay - (now - state.deferrableSince)
            if state.deferrableCount > 0, remaining > .zero { return remaining }
            if state.deferrableCount > 0 { wakeUpContinuation.yield() }
            state.timer = nil
            return nil
        }
    }

    /// Adds an input, and returns when its effect is durable.
    ///
    /// - Throws: The ``QueueError`` with which the scheduler or the database refused the input; with the code `shutDown` if the mailbox is
    ///   closed, or for a command after ``refuseCommands()``.
    @discardableResult
    package func send(_ input: Input) async throws(QueueError) -> InputResult {
        let result: Result<InputResult, QueueError> = await withCheckedContinuation { continuation in
            put(Envelope(input: input) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }

    private func put(_ envelope: Envelope) {
        let isAccepted = state.withLock { state in
            if state.isClosed { return false }
            if state.refusesCommands, case .command = envelope.input { return false }
            state.envelopes.append(envelope)
            // Wakes the writer with the lock held, so that the mailbox can't close between an input and its wake-up.
            wakeUpContinuation.yield()
            return true
        }
        if !isAccepted { envelope.reply?(.failure(QueueError(.shutDown, "The queue is shut down."))) }
    }

    var count: Int { state.withLock { $0.envelopes.count } }

    /// Removes and returns all waiting inputs.
    package func take() -> [Envelope] {
        state.withLock { state in
            defer { state.envelopes = [] }
            state.deferrableCount = 0
            return state.envelopes
        }
    }

    /// Puts inputs back at the front of the mailbox, because the database refuses changes. The writer takes them again at the next wake-up.
    package func putBack(_ envelopes: [Envelope]) {
        state.withLock { $0.envelopes.insert(contentsOf: envelopes, at: 0) }
    }

    /// Refuses commands from now on, but accepts other inputs, such as run events.
    package func refuseCommands() {
        state.withLock { $0.refusesCommands = true }
    }

    /// Refuses all inputs from now on. ``take()`` still returns the waiting inputs.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            state.timer?.cancel()
            wakeUpContinuation.finish()
        }
    }
}
