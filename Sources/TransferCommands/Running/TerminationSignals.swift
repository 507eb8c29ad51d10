import Dispatch
import Locking
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// SIGINT, SIGTERM and, unless the process was started to outlive its terminal, SIGHUP: the first one asks for a clean end, the second one ends the
/// process at once.
struct TerminationSignals {
    private struct State: Sendable {
        var isReceived = false
        var action: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    private let sources: [any DispatchSourceSignal]

    /// - Parameters:
    ///   - hangUp: Whether SIGHUP is one of them.
    ///   - announce: Called with the first signal, on any thread; must not wait for anything.
    init(hangUp: Bool = true, announce: @escaping @Sendable () -> Void) {
        // A reader of our output that goes away must not end transfers; SIGPIPE would.
        signal(SIGPIPE, SIG_IGN)
        let state = Locked(State())
        self.state = state
        sources = ([SIGINT, SIGTERM] + (hangUp ? [SIGHUP] : [])).compactMap { number in
            // The source sees signals that the process ignores, so that none ends it before the source is set up.
            let before = signal(number, SIG_IGN)
            // nohup(1): the process is to outlive its terminal.
            if number == SIGHUP, Self.isIgnoring(before) { return nil }
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let (isFirst, action) = state.withLock { state in
                    defer { state.isReceived = true }
                    return (!state.isReceived, state.action)
                }
                // Whatever still hangs, such as a terminal that takes nothing, must not keep the process.
                guard isFirst else { _exit(ExitStatus.interrupted.rawValue) }
                announce()
                action?()
            }
            source.resume()
            return source
        }
    }

    /// Whether a signal came.
    var isReceived: Bool { state.withLock { $0.isReceived } }

    /// Sets what the first signal does, in place of what was set before; does it at once if that signal came already.
    func whenReceived(_ action: @escaping @Sendable () -> Void) {
        let isReceived = state.withLock { state in
            state.action = action
            return state.isReceived
        }
        if isReceived { action() }
    }

    private static func isIgnoring(_ handler: (@convention(c) (CInt) -> Void)?) -> Bool {
        // Functions can't be compared, and this one is none: the number 1.
        unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Stops listening; the signals stay ignored.
    func cancel() {
        for source in sources { source.cancel() }
    }
}
