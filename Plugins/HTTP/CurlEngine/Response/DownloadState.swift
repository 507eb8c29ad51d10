import CCurl
import TransferCore

/// A buffer with bytes of a response's body. It moves between the loop and the sink.
struct WriteBuffer: Sendable {
    let storage: TransferBuffer
    /// The number of bytes of the body in the storage.
    var count = 0
    /// The sink's error; nil if the write succeeded.
    var failure: (any Error)?
}

/// Passes the body of a response to a sink. With a lane (``DownloadLane``), writes on the loop's own thread. Otherwise, a writer thread
/// writes full buffers while the loop fills the next ones, so both threads work at the same time. Used only on the thread of ``CurlLoop``.
struct DownloadState {
    /// Whether the bytes that libcurl offered were accepted.
    enum OfferResult {
        case accepted
        /// No bytes can be accepted now. The transfer pauses, and libcurl offers the same bytes again.
        case pause
        case failed(any Error)
    }

    /// The size of a buffer in bytes.
    private static let chunkSize = 256 * 1024
    /// The time after which a lane writes the bytes that it has gathered, even if they do not fill a buffer.
    private static let maximumGatheringTime = Duration.milliseconds(50)
    /// The number of buffers that each transfer can always allocate: one to fill and one to write.
    private static let ownChunks = 2
    /// The maximum number of buffers of one transfer.
    private static let maximumChunks = 8
    /// The maximum number of bytes that libcurl offers in one call (CURLOPT_WRITEFUNCTION(3)).
    private static let maximumOffer = Int(CURL_MAX_WRITE_SIZE)

    private let sink: any HTTPResponseSink
    /// The download's use of a lane; nil without a lane.
    private let turn: DownloadLane.Turn?
    private let queue = WriteQueue()
    /// Requests a writer thread for the buffers in the queue.
    private let writeElsewhere: (WriteQueue) throws(TransferError) -> Void
    private let extraChunks: ChunkAllowance
    private var pace: TransferPacer
    private let progress: (@Sendable (Int64) -> Void)?
    /// The buffer that the loop fills; nil while the loop has no buffer.
    private var gathering: WriteBuffer?
    /// On a lane, the number of bytes to gather before the next write. With this limit, writes end at file offsets that are multiples of
    /// `chunkSize`, because the system writes whole pages faster.
    private var laneLimit = 0
    /// On a lane, the time of the last write.
    private var wroteAt = ContinuousClock.now
    private var spares: [TransferBuffer] = []
    /// The number of allocated buffers.
    private var chunks = 0
    /// The number of buffers that were passed to a writer thread and have not come back yet.
    private var writing = 0
    /// The number of bytes that the sink has written.
    private var written: Int64 = 0
    /// The last value that was passed to `progress`.
    private var reported: Int64 = 0
    private(set) var isPaused = false
    /// Whether the transfer is paused because no buffer is free.
    private(set) var isStarved = false
    /// Whether the sink accepts the body; nil until the sink has decided.
    private(set) var isAccepted: Bool?

    init(
        _ sink: any HTTPResponseSink, on turn: DownloadLane.Turn?, pacing: (@Sendable (Int) -> Allowance)?,
        progress: (@Sendable (Int64) -> Void)?, extraChunks: ChunkAllowance,
        writeElsewhere: @escaping (WriteQueue) throws(TransferError) -> Void
    ) {
        self.sink = sink
        self.turn = turn
        self.extraChunks = extraChunks
        self.writeElsewhere = writeElsewhere
        self.progress = progress
        pace = TransferPacer(pacing)
    }

    /// The time at which to consult the rate limits again; nil unless the rate limits pause the transfer.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Whether the loop must soon take back or write buffers, even if no command wakes it.
    var isWriting: Bool { writing > 0 || turn != nil && gathering?.count ?? 0 > 0 }

    /// Whether the sink has written all bytes that arrived so far.
    var isWritten: Bool { writing == 0 && gathering?.count ?? 0 == 0 }

    /// Passes the head of the final response to the sink.
    mutating func begin(_ head: HTTPResponseHead) throws {
        if isAccepted == nil { isAccepted = try sink.accepts(head) }
    }

    /// Takes bytes of the body from libcurl, either all of them or none.
    mutating func accept(_ bytes: UnsafeRawBufferPointer) -> OfferResult {
        if let turn { return unsafe gather(bytes, turn) }
        guard let chunk = gathering ?? makeChunk() else {
            isPaused = true
            isStarved = true
            return .pause
        }
        gathering = chunk
        let end = chunk.count + bytes.count
        guard unsafe end <= chunk.storage.bytes.count, pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        unsafe UnsafeMutableRawBufferPointer(rebasing: chunk.storage.bytes[chunk.count..<end]).copyMemory(from: bytes)
        gathering?.count = end
        guard unsafe end + Self.maximumOffer > chunk.storage.bytes.count else { return .accepted }
        do {
            try handOver()
        } catch {
            return .failed(error)
        }
        return .accepted
    }

    /// Gathers bytes in a buffer, and writes each full buffer on this thread.
    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ turn: DownloadLane.Turn) -> OfferResult {
        guard pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        var rest = unsafe bytes[...]
        do {
            while unsafe !rest.isEmpty {
                var chunk = gathering ?? WriteBuffer(storage: spares.popLast() ?? TransferBuffer(count: Self.chunkSize))
                if chunk.count == 0 { laneLimit = Self.chunkSize - Int(truncatingIfNeeded: sink.offset % Int64(Self.chunkSize)) }
                let end = unsafe min(chunk.count + rest.count, laneLimit)
                let added = unsafe rest.prefix(end - chunk.count)
                unsafe UnsafeMutableRawBufferPointer(rebasing: chunk.storage.bytes[chunk.count..<end])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: added))
                unsafe rest = rest.dropFirst(added.count)
                chunk.count = end
                gathering = chunk
                if end == laneLimit { try writeGathered(turn) }
            }
        } catch {
            return .failed(error)
        }
        return .accepted
    }

    /// Writes the gathered bytes on this thread.
    private mutating func writeGathered(_ turn: DownloadLane.Turn) throws {
        wroteAt = .now
        guard let chunk = gathering, chunk.count > 0 else { return }
        try turn.beginWriting()
        defer { turn.endWriting() }
        try sink.write(unsafe UnsafeRawBufferPointer(rebasing: chunk.storage.bytes[..<chunk.count]).bytes)
        written += Int64(chunk.count)
        gathering?.count = 0
    }

    /// Takes back written buffers, and passes the gathered bytes to a writer thread if none is writing. On a lane, writes the gathered bytes
    /// if they have waited long enough. Called when libcurl has no more bytes for now, which keeps writes large.
    ///
    /// - Parameter isEnd: Whether the body is complete. The loop then receives a notification when all bytes are written.
    /// - Throws: The sink's error; a `TransferError` if no writer thread can start; or, on a lane, the reason why the caller stopped waiting.
    mutating func advance(isEnd: Bool = false) throws {
        // Limits the delay of bytes that arrive slowly.
        if let turn, isEnd || ContinuousClock.now - wroteAt >= Self.maximumGatheringTime { try writeGathered(turn) }
        var hasChanged = turn == nil
        while hasChanged {
            for chunk in queue.collectWritten() {
                writing -= 1
                if let failure = chunk.failure { throw failure }
                written += Int64(chunk.count)
                spares.append(chunk.storage)
            }
            if isEnd || writing == 0 { try handOver() }
            // Requests a notification only after half of the buffers are written, because one notification for each buffer would be slower.
            let least = isEnd ? 0 : chunks / 2
            if writing <= least { isStarved = false }
            hasChanged = (isEnd || isStarved) && writing > least && queue.requestNotification(atUnwritten: least)
        }
        guard reported != written, turn?.isOver != true else { return }
        reported = written
        progress?(written)
    }

    /// Ends the transfer. Unwritten bytes are dropped.
    mutating func close() {
        queue.close()
        extraChunks.left += max(0, chunks - Self.ownChunks)
        chunks = 0
    }

    mutating func unpause() {
        isPaused = false
        pace.resumesAt = nil
    }

    /// Returns a free buffer; nil if the transfer must wait for one.
    private mutating func makeChunk() -> WriteBuffer? {
        if let storage = spares.popLast() { return WriteBuffer(storage: storage) }
        if chunks >= Self.ownChunks {
            guard chunks < Self.maximumChunks, extraChunks.left > 0 else { return nil }
            extraChunks.left -= 1
        }
        chunks += 1
        return WriteBuffer(storage: TransferBuffer(count: Self.chunkSize))
    }

    /// Passes the gathered bytes to a writer thread.
    private mutating func handOver() throws(TransferError) {
        guard let chunk = gathering, chunk.count > 0 else { return }
        gathering = nil
        writing += 1
        if queue.append(chunk) { try writeElsewhere(queue) }
    }

    /// Writes a buffer to the sink. Called on a writer thread.
    ///
    /// - Returns: The buffer, with the sink's error if the write failed.
    static func write(_ chunk: WriteBuffer, to sink: any HTTPResponseSink) -> WriteBuffer {
        var chunk = chunk
        do {
            try sink.write(unsafe UnsafeRawBufferPointer(rebasing: chunk.storage.bytes[..<chunk.count]).bytes)
        } catch {
            chunk.failure = error
        }
        return chunk
    }
}
