import Dispatch
import Locking
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Handles SIGINT, SIGTERM and, unless the process must outlive its terminal, SIGHUP. Ignores SIGPIPE.
///
/// The first signal requests a clean shutdown. The second signal makes the process exit immediately.
package struct TerminationSignals {
    private struct State: Sendable {
        var isReceived = false
        var action: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    private let sources: [any DispatchSourceSignal]

    /// Starts to handle the signals.
    ///
    /// - Parameters:
    ///   - hangUp: Whether to handle SIGHUP.
    ///   - announce: Called for the first signal, on any thread. Must not block.
    package init(hangUp: Bool = true, announce: @escaping @Sendable () -> Void) {
        // SIGPIPE is ignored, because it would end the process and its transfers if the reader of the output exits.
        signal(SIGPIPE, SIG_IGN)
        let state = Locked(State())
        self.state = state
        sources = ([SIGINT, SIGTERM] + (hangUp ? [SIGHUP] : [])).compactMap { number in
            // Ignored from here on, so that the signal can't end the process before the source is ready. The source still receives the signal.
            let before = signal(number, SIG_IGN)
            // If SIGHUP was already ignored, nohup(1) started this process to outlive its terminal.
            if number == SIGHUP, Self.isIgnoring(before) { return nil }
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let (isFirst, action) = state.withLock { state in
                    defer { state.isReceived = true }
                    return (!state.isReceived, state.action)
                }
                // _exit also works while a write to a blocked terminal hangs.
                guard isFirst else { _exit(ExitStatus.interrupted.rawValue) }
                announce()
                action?()
            }
            source.resume()
            return source
        }
    }

    var isReceived: Bool { state.withLock { $0.isReceived } }

    /// Sets the action for the first signal, replacing the previous action. Calls the action immediately if a signal was already received.
    package func whenReceived(_ action: @escaping @Sendable () -> Void) {
        let isReceived = state.withLock { state in
            state.action = action
            return state.isReceived
        }
        if isReceived { action() }
    }

    private static func isIgnoring(_ handler: (@convention(c) (CInt) -> Void)?) -> Bool {
        // Swift can't compare functions, and SIG_IGN is the number 1 rather than a function.
        unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Stops handling the signals, which stay ignored.
    package func cancel() {
        for source in sources { source.cancel() }
    }
}
