import Locking
import TransferCore

/// Where everything that may change the queue waits for the one writer. Inputs are taken in the order in which they were put in, from any
/// thread; all that wait together share one transaction.
package final class Mailbox: Sendable {
    package struct Envelope: Sendable {
        package let input: Input
        /// Told once the input's effect is durable, or why it has none.
        package let reply: (@Sendable (Result<Answer, QueueError>) -> Void)?

        /// Whether it changes nothing by itself.
        var isTick: Bool {
            if case .tick = input { true } else { false }
        }
    }

    /// Whether it is closed: nothing is taken any more.
    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Lets the writer look at what waits, and returns when it has.
    func tick() async {
        _ = try? await send(.tick)
    }

    private struct State: Sendable {
        var envelopes: [Envelope] = []
        /// How many of them nobody is in a hurry for, and what rings when they have waited long enough.
        var unhurried = 0
        /// When the first of them came.
        var unhurriedSince = Duration.zero
        var timer: Task<Void, Never>?
        var refusesCommands = false
        var isClosed = false
    }

    /// How many inputs that nobody is in a hurry for share a transaction, and for how long one waits for others.
    private static let groupSize = 64
    private static let groupDelay = Duration.milliseconds(20)

    private let state = Locked(State())
    private let bell: AsyncStream<Void>.Continuation
    /// Rings when something was put in; the one writer listens.
    package let rings: AsyncStream<Void>

    package init() {
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Puts an input in, without waiting for it.
    package func post(_ input: Input) {
        put(Envelope(input: input, reply: nil))
    }

    /// Puts an input in that may wait for others, or for 20 ms, so that they share a transaction. Whatever is put in later comes after it.
    package func postUnhurried(_ input: Input, clock: EngineClock) {
        state.withLock { state in
            if state.isClosed { return }
            state.envelopes.append(Envelope(input: input, reply: nil))
            if state.unhurried == 0 { state.unhurriedSince = clock.now() }
            state.unhurried += 1
            if state.unhurried == Self.groupSize { bell.yield() }
            guard state.timer == nil else { return }
            // It goes on when what it was set for is taken earlier: setting one for each group costs more than waking up for nothing.
            state.timer = Task { [weak self] in
                var delay: Duration? = Self.groupDelay
                while let time = delay, (try? await clock.sleep(time)) != nil { delay = self?.timeIsOver(at: clock.now()) }
            }
        }
    }

    /// Rings if the oldest of what nobody is in a hurry for waited long enough.
    ///
    /// - Returns: For how long it has to wait yet.
    private func timeIsOver(at now: Duration) -> Duration? {
        state.withLock { state in
            let left = Self.groupDelay - (now - state.unhurriedSince)
            if state.unhurried > 0, left > .zero { return left }
            if state.unhurried > 0 { bell.yield() }
            state.timer = nil
            return nil
        }
    }

    /// Puts an input in, and returns when its effect is durable.
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
            // Under the lock, so that no envelope comes after the last ring.
            bell.yield()
            return true
        }
        if !isTaken { envelope.reply?(.failure(QueueError(.shutDown, "The queue was shut down."))) }
    }

    /// How many inputs wait.
    var count: Int { state.withLock { $0.envelopes.count } }

    /// Takes all that waits.
    package func take() -> [Envelope] {
        state.withLock { state in
            defer { state.envelopes = [] }
            state.unhurried = 0
            return state.envelopes
        }
    }

    /// Puts what the store refused back, before all that came since, to be taken at the next ring.
    package func putBack(_ envelopes: [Envelope]) {
        state.withLock { $0.envelopes.insert(contentsOf: envelopes, at: 0) }
    }

    /// Refuses commands from now on; what runs tell is still taken.
    package func refuseCommands() {
        state.withLock { $0.refusesCommands = true }
    }

    /// Refuses everything from now on; what waits is still taken.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            state.timer?.cancel()
            bell.finish()
        }
    }
}
