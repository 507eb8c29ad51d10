import CCurl
import TransferCore

/// A piece of a response's body on its way to the sink, or back.
struct WriteChunk: Sendable {
    let storage: TransferBuffer
    /// The number of bytes of the storage that hold the piece.
    var count = 0
    /// The sink's error.
    var failure: (any Error)?
}

/// Passes the body of a response to a sink. On a lane, writes on the loop's own thread. Otherwise a writer thread writes pieces while the
/// next ones are gathered, so neither thread waits for the other while both are about as fast. Confined to the loop's thread.
struct DownloadState {
    /// The result of libcurl's offer of bytes.
    enum Take {
        case taken
        /// Not now: the transfer pauses, and libcurl offers the same bytes again.
        case pause
        case failed(any Error)
    }

    private static let chunkSize = 256 * 1024
    /// On a lane, gathered bytes are written after this time.
    private static let longestGathering = Duration.milliseconds(50)
    /// The number of chunks that each transfer always has: one to gather and one to write.
    private static let ownChunks = 2
    private static let mostChunks = 8
    /// The maximum number of bytes that libcurl offers in one call (CURLOPT_WRITEFUNCTION(3)).
    private static let maximumOffer = Int(CURL_MAX_WRITE_SIZE)

    private let sink: any HTTPResponseSink
    /// Set on a lane.
    private let turn: DownloadLane.Turn?
    private let queue = WriteQueue()
    /// Makes a writer thread write the queue.
    private let writeElsewhere: (WriteQueue) throws(TransferError) -> Void
    private let extraChunks: ChunkAllowance
    private var pace: Pace
    private let progress: (@Sendable (Int64) -> Void)?
    private var gathering: WriteChunk?
    /// On a lane, the limit of the current chunk. It ends at a multiple of its size in the file, because whole pages cost the system less.
    private var laneLimit = 0
    /// On a lane, the time of the last write.
    private var wroteAt = ContinuousClock.now
    private var spares: [TransferBuffer] = []
    /// The total number of chunks.
    private var chunks = 0
    /// The number of chunks that the writer has.
    private var writing = 0
    private var written: Int64 = 0
    private var reported: Int64 = 0
    private(set) var isPaused = false
    /// Whether the transfer is paused until there is a free chunk.
    private(set) var isStarved = false
    /// Whether the sink wants the body; nil before it was asked.
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
        pace = Pace(pacing)
    }

    /// When to ask the rate limits again; nil unless they pause the transfer.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Whether there will be something to take back or write soon, without a wake-up of the loop.
    var isWriting: Bool { writing > 0 || turn != nil && gathering?.count ?? 0 > 0 }

    /// Whether the sink has all bytes that arrived so far.
    var isWritten: Bool { writing == 0 && gathering?.count ?? 0 == 0 }

    /// Passes the head of the final response to the sink.
    mutating func begin(_ head: HTTPResponseHead) throws {
        if isAccepted == nil { isAccepted = try sink.accepts(head) }
    }

    mutating func take(_ bytes: UnsafeRawBufferPointer) -> Take {
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
        guard unsafe end + Self.maximumOffer > chunk.storage.bytes.count else { return .taken }
        do {
            try handOver()
        } catch {
            return .failed(error)
        }
        return .taken
    }

    /// Gathers bytes, and writes each full chunk on this thread.
    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ turn: DownloadLane.Turn) -> Take {
        guard pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        var rest = unsafe bytes[...]
        do {
            while unsafe !rest.isEmpty {
                var chunk = gathering ?? WriteChunk(storage: spares.popLast() ?? TransferBuffer(count: Self.chunkSize))
                if chunk.count == 0 { laneLimit = Self.chunkSize - Int(truncatingIfNeeded: sink.offset % Int64(Self.chunkSize)) }
                let end = unsafe min(chunk.count + rest.count, laneLimit)
                let piece = unsafe rest.prefix(end - chunk.count)
                unsafe UnsafeMutableRawBufferPointer(rebasing: chunk.storage.bytes[chunk.count..<end])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
                unsafe rest = rest.dropFirst(piece.count)
                chunk.count = end
                gathering = chunk
                if end == laneLimit { try writeGathered(turn) }
            }
        } catch {
            return .failed(error)
        }
        return .taken
    }

    private mutating func writeGathered(_ turn: DownloadLane.Turn) throws {
        wroteAt = .now
        guard let chunk = gathering, chunk.count > 0 else { return }
        try turn.beginWriting()
        defer { turn.endWriting() }
        try sink.write(unsafe UnsafeRawBufferPointer(rebasing: chunk.storage.bytes[..<chunk.count]).bytes)
        written += Int64(chunk.count)
        gathering?.count = 0
    }

    /// Takes back written chunks, and passes on the gathered one if the writer is idle. Called when libcurl has nothing more to offer at
    /// the moment, so that as much as possible is written in one call.
    ///
    /// - Parameter isEnd: Whether the body is complete; the loop is called when all is written.
    /// - Throws: The sink's error.
    mutating func settle(isEnd: Bool = false) throws {
        // Bytes that arrive slowly are not held back for long.
        if let turn, isEnd || ContinuousClock.now - wroteAt >= Self.longestGathering { try writeGathered(turn) }
        var hasChanged = turn == nil
        while hasChanged {
            for chunk in queue.takeWritten() {
                writing -= 1
                if let failure = chunk.failure { throw failure }
                written += Int64(chunk.count)
                spares.append(chunk.storage)
            }
            if isEnd || writing == 0 { try handOver() }
            // Half of them together, because a call for each one would cost more than it gains.
            let least = isEnd ? 0 : chunks / 2
            if writing <= least { isStarved = false }
            hasChanged = (isEnd || isStarved) && writing > least && queue.isWritten(downTo: least)
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

    private mutating func makeChunk() -> WriteChunk? {
        if let storage = spares.popLast() { return WriteChunk(storage: storage) }
        if chunks >= Self.ownChunks {
            guard chunks < Self.mostChunks, extraChunks.left > 0 else { return nil }
            extraChunks.left -= 1
        }
        chunks += 1
        return WriteChunk(storage: TransferBuffer(count: Self.chunkSize))
    }

    private mutating func handOver() throws(TransferError) {
        guard let chunk = gathering, chunk.count > 0 else { return }
        gathering = nil
        writing += 1
        if queue.append(chunk) { try writeElsewhere(queue) }
    }

    /// Lets the sink write a chunk. Called on a writer thread.
    static func write(_ chunk: WriteChunk, to sink: any HTTPResponseSink) -> WriteChunk {
        var chunk = chunk
        do {
            try sink.write(unsafe UnsafeRawBufferPointer(rebasing: chunk.storage.bytes[..<chunk.count]).bytes)
        } catch {
            chunk.failure = error
        }
        return chunk
    }
}
