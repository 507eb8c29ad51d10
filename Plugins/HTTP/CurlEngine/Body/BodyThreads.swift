import TransferCore
import TransportSupport

/// Connects the loop to the threads that read request bodies and write response bodies. Used only on the thread of ``CurlLoop``.
struct BodyThreads {
    let mailbox: LoopMailbox
    let readers: ReaderThreads
    /// The shared writer threads, for downloads whose caller provides no writer threads.
    let writers: WorkerThreads
    /// The budget of extra buffers that the loop's downloads share, in addition to the two buffers that each download always has.
    private let extraBuffers = BufferBudget()

    init(mailbox: LoopMailbox, readers: ReaderThreads, writers: WorkerThreads) {
        self.mailbox = mailbox
        self.readers = readers
        self.writers = writers
    }

    /// Creates the source of a request's body.
    ///
    /// - Throws: An error of the kind ``CurlEngineError/Kind/invalidRequest`` if another request has already used the body's stream.
    func source(_ pending: PendingRequest) throws(CurlEngineError) -> BodySource {
        try source(pending.request.body, of: pending.id, observedBy: pending.request.observeBody)
    }

    /// - Parameter observe: Called on reader threads with the bytes of file bodies; nil for no calls. If it is not nil, reader threads also read
    ///   bytes that are in the page cache, so that `observe` receives every byte.
    private func source(
        _ body: HTTPBody, of id: PendingRequest.ID, observedBy observe: (@Sendable (RawSpan) -> Void)?
    ) throws(CurlEngineError) -> BodySource {
        switch body {
        case .none: return .none
        case .bytes(let bytes): return .bytes(bytes, position: 0)
        case .file(let file, let offset, let length):
            let threads = readers.threads(for: file)
            let canReadCached = observe == nil && readers.readsCachedFilesDirectly
            let body = FileBody(file, offset: offset, length: length, canReadCached: canReadCached) {
                [mailbox] buffer throws(TransferError) in
                try threads.submit { mailbox.post(.uploadBufferFilled(id, FileBody.fill(buffer, from: file, observedBy: observe))) }
            }
            return .file(body)
        case .stream(let stream, let length):
            guard stream.attach(wake: { [mailbox] in mailbox.post(.uploadStreamGrew(id)) }) else {
                throw CurlEngineError(.invalidRequest, "The body stream was already used. Create a new stream for each request.")
            }
            return .stream(StreamBody(stream), remaining: length)
        case .sequence(let bodies):
            var sources: [BodySource] = []
            for body in bodies where body.length != 0 { sources.append(try source(body, of: id, observedBy: observe)) }
            return .sequence(sources)
        }
    }

    func download(_ pending: PendingRequest) -> DownloadState? {
        guard case .download(let sink, let threads) = pending.purpose else { return nil }
        let id = pending.id
        return DownloadState(
            sink, on: pending.reservedLoop?.reservation, pacing: pending.pacing, progress: pending.progress, extraBuffers: extraBuffers
        ) {
            [mailbox, threads = threads ?? writers] queue throws(TransferError) in
            try Self.write(queue, to: sink, on: threads) { mailbox.post(.downloadWritten(id)) }
        }
    }

    private static func write(
        _ queue: WriteQueue, to sink: any HTTPResponseSink, on threads: WorkerThreads, notifyLoop: @escaping @Sendable () -> Void
    ) throws(TransferError) {
        try threads.submit {
            // This thread is already running, so submitting work to it again does not fail.
            if queue.write(to: sink, notifyLoop: notifyLoop) { try? write(queue, to: sink, on: threads, notifyLoop: notifyLoop) }
        }
    }
}
