import CCurl
import Locking
public import TransferCore
import TransportSupport

/// Sends HTTP requests over libcurl, many at a time, from one thread of its own.
///
/// Connections are kept alive and shared by all requests of one engine. Nothing is repeated, redirected or remembered: that is the caller's
/// to decide. TLS is 1.2 or later and always verified.
public final class CurlEngine: Sendable {
    /// Limits of an engine.
    public struct Configuration: Sendable {
        /// How many requests may be under way at once, and so how many connections may be in use; requests beyond that wait. As many idle
        /// connections are kept for each set of ``ConnectionOptions``. Downloads with a thread of their own come on top.
        public var maximumConnections = 128
        /// How long a connection may take to be made, TLS included.
        public var connectTimeout: Duration = .seconds(30)
        /// How large a header section may be, in bytes, interim answers included.
        public var maximumResponseHeaders = 256 * 1024
        /// How many bytes of a response's body are kept; a longer one is cut off there.
        public var maximumResponseBody = 64 * 1024
        /// How many bytes of a request's body are handed to a socket at a time, at most; libcurl takes 16 KiB to 2 MiB.
        /// What is read and what the socket makes of it are to fit the cache of one processor together.
        public var uploadBufferSize = 256 * 1024
        /// How many threads may read files that are not in the page cache, for each device that there are such files on.
        public var readerThreads = 4
        /// How many threads may write what is downloaded, where a download does not bring threads of its own.
        public var writerThreads = 4
        /// How many downloads may have a thread of their own, on which they are received and written; those beyond share one thread that
        /// receives and ``writerThreads``. Each thread is started when it is first needed.
        public var downloadThreads = 2

        /// Makes the default limits.
        public init() {}
    }

    /// The version of the libcurl that this process runs on, and of the libraries that it uses, in its own words (curl_version(3)).
    public static var libraryVersion: String { unsafe String(cString: curl_version()) }

    private struct Stage {
        var mailbox: LoopMailbox?
        var lanes: [DownloadLane] = []
        var isShutDown = false
    }

    private let configuration: Configuration
    private let readers: ReaderThreads
    private let stage = Locked(Stage())

    /// Makes an engine. Its thread starts with the first request.
    public convenience init(configuration: Configuration = Configuration()) {
        self.init(configuration: configuration, readers: ReaderThreads(perDevice: configuration.readerThreads))
    }

    /// Makes an engine that reads files on threads of the caller's choice.
    package init(configuration: Configuration, readers: ReaderThreads) {
        self.configuration = configuration
        self.readers = readers
    }

    deinit {
        let stage = stage.withLock { $0 }
        stage.mailbox?.post(.stop)
        for lane in stage.lanes { lane.mailbox.post(.stop) }
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// May be called from any task, any number of times at once. Cancelling the task closes the connection, and returns at once.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - pacing: Asked before each read of the body how many bytes may be sent now. Called on the engine's thread: must not block.
    ///   - progress: Told how many bytes of the body the socket took, each time that there are more. Called on the engine's thread: must not
    ///     block.
    /// - Throws: A ``CurlEngineError`` if there is no answer, a `TransferError` if the body can't be read or is shorter than it should be, or
    ///   `CancellationError`.
    public func perform(
        _ request: HTTPRequest, pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .response, pacing: pacing, progress: progress).response
    }

    /// Ends all requests with an error of the kind ``CurlEngineError/Kind/shutDown``, closes all connections, and returns when the threads did
    /// their last work, except for those on which a sink is writing. To be awaited before the process exits. Requests made later are refused.
    public func shutdown() async {
        let ended = stage.withLock { stage in
            defer { stage = Stage(isShutDown: true) }
            return stage
        }
        ended.mailbox?.post(.stop)
        for lane in ended.lanes { await lane.shutdown() }
        await ended.mailbox?.waitUntilClosed()
    }

    func run(
        _ request: HTTPRequest, _ purpose: TransferOrder.Purpose, pacing: (@Sendable (Int) -> Allowance)?,
        progress: (@Sendable (Int64) -> Void)?
    ) async throws -> TransferOrder.Outcome {
        try Task.checkCancellation()
        try request.validate()
        request.connection.verification.warn?(
            "The identity of the server \(request.origin) is not verified: anybody on the way can read and change "
                + "what is sent. Name its certificate as trusted instead.")
        let outcome = Once<TransferOrder.Outcome>()
        let lane = if case .download = purpose { try lane(for: outcome) } else { nil as Lane? }
        let mailbox = try lane?.lane.mailbox ?? start()
        let order = TransferOrder(
            id: mailbox.nextTransferID(), request: request, purpose: purpose, pacing: pacing, progress: progress,
            isCancelled: Locked(false), lane: lane, outcome: outcome)
        return try await withTaskCancellationHandler {
            if !mailbox.post(.start(order)) { order.complete(.failure(CurlEngineError.shutDown)) }
            return try await outcome.value()
        } onCancel: {
            order.isCancelled.withLock { $0 = true }
            mailbox.post(.cancel(order.id))
            // The loop may be waiting for the sink.
            if lane?.turn.end(with: CancellationError()) == true { outcome.resume(.failure(CancellationError())) }
        }
    }

    private typealias Lane = (lane: DownloadLane, turn: DownloadLane.Turn)

    /// A lane that is free; nil if there is none.
    private func lane(for outcome: Once<TransferOrder.Outcome>) throws(CurlEngineError) -> Lane? {
        try stage.withLock { stage throws(CurlEngineError) in
            guard !stage.isShutDown else { throw .shutDown }
            for lane in stage.lanes {
                if let turn = lane.take(for: outcome) { return (lane, turn) }
            }
            guard stage.lanes.count < configuration.downloadThreads else { return nil }
            var configuration = configuration
            // One at a time, and few that rest.
            configuration.maximumConnections = 2
            // Without a thread of its own, a download goes with the others.
            guard let mailbox = try? CurlLoop.start(configuration, readers: readers) else { return nil }
            let lane = DownloadLane(mailbox)
            stage.lanes.append(lane)
            return lane.take(for: outcome).map { (lane, $0) }
        }
    }

    private func start() throws(CurlEngineError) -> LoopMailbox {
        try stage.withLock { stage throws(CurlEngineError) in
            guard !stage.isShutDown else { throw .shutDown }
            if let mailbox = stage.mailbox { return mailbox }
            let mailbox = try CurlLoop.start(configuration, readers: readers)
            stage.mailbox = mailbox
            return mailbox
        }
    }
}

extension CurlEngineError {
    static let shutDown = CurlEngineError(.shutDown, "The HTTP client was shut down.")
}
