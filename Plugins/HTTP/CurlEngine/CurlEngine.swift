import CCurl
import Locking
import Tracing
package import TransferCore
import TransportSupport

/// An HTTP client. It sends concurrent requests with libcurl on one shared thread. Up to ``Configuration/downloadThreads`` downloads each
/// have a dedicated thread.
///
/// The requests of an engine share kept-alive connections. The engine does not follow redirects, keep cookies, or retry requests, except
/// for libcurl's own retries (see ``HTTPRequest``). It uses TLS 1.2 or later, and verifies the server unless
/// ``ConnectionOptions/verification`` allows otherwise.
package final class CurlEngine: Sendable {
    /// Limits of an engine.
    package struct Configuration: Sendable {
        /// The maximum number of concurrent requests, and therefore of connections in use. Other requests wait. The engine keeps up to the same
        /// number of idle connections for each set of ``ConnectionOptions``. Downloads on dedicated threads do not count towards this limit.
        package var maximumConnections = 256
        /// The time limit for establishing a connection, including TLS.
        package var connectTimeout: Duration = .seconds(30)
        /// The maximum size in bytes of the headers of one interim or final response. For a final response, the size includes its trailers.
        package var maximumResponseHeaders = 256 * 1024
        /// The maximum number of bytes of a response's body that are kept in memory; further bytes are dropped.
        package var maximumResponseBody = 64 * 1024
        /// The maximum number of bytes of a request's body that are passed to a socket in one call; libcurl allows 16 KiB to 2 MiB. Choose
        /// a size at which the data and the socket's copy of it both fit in the cache of one processor core.
        package var uploadBufferSize = 256 * 1024
        /// The maximum number of threads per device that read file content that is not in the page cache.
        package var readerThreads = 4
        /// The maximum number of shared writer threads. They write downloads that have neither a dedicated thread nor writer threads from
        /// the caller.
        package var writerThreads = 4
        /// The maximum number of downloads with a dedicated thread, which receives and writes the bytes. All further downloads share one
        /// receiving thread, and other threads write them. Each thread starts when it is first needed.
        package var downloadThreads = 2

        /// Creates the default limits.
        package init() {}
    }

    /// The names and versions of libcurl in this process, and of the libraries that it uses (curl_version(3)). An element can end with the
    /// libraries that the named library uses, in parentheses, for example `libpsl/0.21.2 (+libidn2/2.3.3)`.
    package static var libraries: [String] {
        unsafe String(cString: curl_version()).split(separator: " ").reduce(into: []) { libraries, word in
            if word.hasPrefix("("), let last = libraries.popLast() {
                libraries.append("\(last) \(word)")
            } else {
                libraries.append(String(word))
            }
        }
    }

    private struct State {
        /// The mailbox of the shared loop; nil until the loop is needed.
        var mailbox: LoopMailbox?
        var dedicatedLoops: [DedicatedLoop] = []
        var isShutDown = false
    }

    private let configuration: Configuration
    private let readers: ReaderThreads
    private let state = Locked(State())

    /// Creates an engine. Each of its threads starts when it is first needed.
    package convenience init(configuration: Configuration = Configuration()) {
        self.init(configuration: configuration, readers: ReaderThreads(perDevice: configuration.readerThreads))
    }

    package init(configuration: Configuration, readers: ReaderThreads) {
        self.configuration = configuration
        self.readers = readers
    }

    deinit {
        let state = state.withLock { $0 }
        state.mailbox?.post(.stop)
        for loop in state.dedicatedLoops { loop.mailbox.post(.stop) }
    }

    /// Sends a request and waits for the whole response.
    ///
    /// Can be called from any task, any number of times concurrently. Cancelling the task makes this method throw immediately. The engine
    /// then ends the request. An HTTP/1.1 connection closes.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - pacing: Returns the allowance for the next bytes of the request's body, at most `limit` bytes. If it returns 0 bytes, the engine
    ///     calls it again after the allowance's `retryAfter`. Called on the engine's thread. Must not block. Nil to send without a limit.
    ///   - progress: Called with the number of bytes of the body that the socket accepted, each time this number grows. Called on the
    ///     engine's thread. Must not block.
    /// - Throws: A ``CurlEngineError`` if there is no complete response; a `TransferError` if a file of the body can't be read or is too short; the
    ///   error of ``HTTPBodyStream/fail(_:)`` or ``HTTPRequest/trailers``; or `CancellationError`.
    package func perform(
        _ request: HTTPRequest, pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .response, pacing: pacing, progress: progress).response
    }

    /// Shuts the engine down. Await this method before the process exits.
    ///
    /// All requests end with an error of the kind ``CurlEngineError/Kind/shutDown``, and all connections close. Returns after the threads
    /// that run libcurl have ended, but does not wait for a dedicated thread whose sink is writing. Later requests throw the same error.
    package func shutdown() async {
        let ended = state.withLock { state in
            defer { state = State(isShutDown: true) }
            return state
        }
        ended.mailbox?.post(.stop)
        for loop in ended.dedicatedLoops { await loop.shutdown() }
        await ended.mailbox?.waitUntilEnded()
    }

    func run(
        _ request: HTTPRequest, _ purpose: PendingRequest.Purpose, pacing: (@Sendable (Int) -> Allowance)?,
        progress: (@Sendable (Int64) -> Void)?
    ) async throws -> PendingRequest.Outcome {
        let meter = RequestMeter(request.method)
        return try await withSpan(meter.method, ofKind: .client) { span in
            meter.describe(request, in: span)
            do {
                let outcome = try await send(request, purpose, pacing: pacing, progress: progress)
                // A request for a socket (see `connect`) has no response.
                if case .response(let response) = outcome { meter.end(status: response.status, in: span) }
                return outcome
            } catch {
                meter.end(error)
                throw error
            }
        }
    }

    private func send(
        _ request: HTTPRequest, _ purpose: PendingRequest.Purpose, pacing: (@Sendable (Int) -> Allowance)?,
        progress: (@Sendable (Int64) -> Void)?
    ) async throws -> PendingRequest.Outcome {
        try Task.checkCancellation()
        try request.validate()
        request.connection.verification.warn?(
            "The certificate of \(request.originForMessages) is not verified, so anyone on the network path can read and change "
                + "the data. Trust the certificate instead.")
        let outcome = SingleResult<PendingRequest.Outcome>()
        let reserved = if case .download = purpose { try reserveLoop(for: outcome) } else { nil as ReservedLoop? }
        let mailbox = try reserved?.loop.mailbox ?? startSharedLoop()
        let pending = PendingRequest(
            id: mailbox.nextRequestID(), request: request, purpose: purpose, pacing: pacing, progress: progress,
            isCancelled: Locked(false), reservedLoop: reserved, outcome: outcome)
        return try await withTaskCancellationHandler {
            if !mailbox.post(.start(pending)) { pending.complete(.failure(CurlEngineError.shutDown)) }
            return try await outcome.value()
        } onCancel: {
            pending.isCancelled.withLock { $0 = true }
            mailbox.post(.cancel(pending.id))
            // A write by the sink may block the loop's thread, so this thread delivers the result.
            if reserved?.reservation.end(with: CancellationError()) == true { outcome.resume(.failure(CancellationError())) }
        }
    }

    private typealias ReservedLoop = (loop: DedicatedLoop, reservation: DedicatedLoop.Reservation)

    /// Reserves a free ``DedicatedLoop`` for a download, and starts one if necessary. Returns nil if the download must use the shared loop,
    /// because all dedicated loops are in use or the thread of a new one can't start.
    ///
    /// - Throws: An error of the kind ``CurlEngineError/Kind/shutDown`` after ``shutdown()``.
    private func reserveLoop(for outcome: SingleResult<PendingRequest.Outcome>) throws(CurlEngineError) -> ReservedLoop? {
        try state.withLock { state throws(CurlEngineError) in
            guard !state.isShutDown else { throw .shutDown }
            for loop in state.dedicatedLoops {
                if let reservation = loop.reserve(for: outcome) { return (loop, reservation) }
            }
            guard state.dedicatedLoops.count < configuration.downloadThreads else { return nil }
            var configuration = configuration
            // A dedicated loop runs one download at a time, so it needs few connections.
            configuration.maximumConnections = 2
            guard let mailbox = try? CurlLoop.start(configuration, readers: readers) else { return nil }
            let loop = DedicatedLoop(mailbox)
            state.dedicatedLoops.append(loop)
            return loop.reserve(for: outcome).map { (loop, $0) }
        }
    }

    private func startSharedLoop() throws(CurlEngineError) -> LoopMailbox {
        try state.withLock { state throws(CurlEngineError) in
            guard !state.isShutDown else { throw .shutDown }
            if let mailbox = state.mailbox { return mailbox }
            let mailbox = try CurlLoop.start(configuration, readers: readers)
            state.mailbox = mailbox
            return mailbox
        }
    }
}

extension CurlEngineError {
    static let shutDown = CurlEngineError(.shutDown, "The HTTP client was shut down.")
}
