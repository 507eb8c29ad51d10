import Locking
import Synchronization

/// Measures the time that an attempt spends in each phase. The transport's threads call ``enter(_:)`` each time bytes move. A call that does not
/// change the phase takes no lock and does not read the clock.
final class AttemptPhases: Sendable {
    enum Phase: Int, Sendable {
        /// Not measured: the attempt has not begun, or waits for its turn.
        case none
        case connecting, transferring, awaitingResponse, storing, rateLimited

        /// The property that contains the phase's time; nil for ``none``.
        var time: WritableKeyPath<TransferTimes, Double>? {
            switch self {
            case .none: nil
            case .connecting: \.secondsConnecting
            case .transferring: \.secondsTransferring
            case .awaitingResponse: \.secondsAwaitingResponse
            case .storing: \.secondsStoring
            case .rateLimited: \.secondsRateLimited
            }
        }
    }

    private struct State: Sendable {
        var phase = Phase.none
        var since = Duration.zero
        var times = TransferTimes()

        mutating func enter(_ next: Phase, at uptime: Duration) {
            if let time = phase.time { times[keyPath: time] += max(0, (uptime - since).inSeconds) }
            (phase, since) = (next, uptime)
        }
    }

    private let now: @Sendable () -> Duration
    /// A copy of the state's phase, which can be read without the lock.
    private let current = Atomic(Phase.none.rawValue)
    private let state = Locked(State())

    init(now: @escaping @Sendable () -> Duration) {
        self.now = now
    }

    /// Begins a phase, and returns the previous phase. Has no effect if the attempt is already in this phase.
    @discardableResult
    func enter(_ phase: Phase) -> Phase {
        guard current.load(ordering: .relaxed) != phase.rawValue else { return phase }
        return state.withLock { state in
            let before = state.phase
            state.enter(phase, at: now())
            current.store(phase.rawValue, ordering: .relaxed)
            return before
        }
    }

    /// Ends a phase and begins the next phase. Has no effect if the first phase has already ended, for example because bytes moved.
    func leave(_ phase: Phase, for next: Phase) {
        guard current.load(ordering: .relaxed) == phase.rawValue else { return }
        enter(next)
    }

    var times: TransferTimes {
        state.withLock { state in
            state.enter(state.phase, at: now())
            return state.times
        }
    }
}
