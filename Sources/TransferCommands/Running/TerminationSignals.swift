import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// SIGINT and SIGTERM as something to wait for, instead of an end of the process.
struct TerminationSignals {
    /// One element a signal.
    let received: AsyncStream<Void>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        received = stream
        // A reader of our output that goes away must not end transfers; SIGPIPE would.
        signal(SIGPIPE, SIG_IGN)
        sources = [SIGINT, SIGTERM].map { number in
            // The source sees signals that the process ignores, so that none ends it before the source is set up.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
    }

    /// Stops listening; the signals stay ignored.
    func cancel() {
        for source in sources { source.cancel() }
    }
}
