import CCurl
import TransferCore

/// A piece of an answer's body on its way to the sink, or back.
struct WriteChunk: Sendable {
    let storage: TransferBuffer
    /// How many bytes of the storage hold the piece.
    var count = 0
    /// What the sink threw.
    var failure: (any Error)?
}

/// Hands the body of an answer to a sink. On a lane, on the loop's own thread; otherwise by way of a writer thread: pieces are written while the next ones are
/// gathered, so that neither thread waits for the other as long as both are about as fast. Confined to the loop's thread.
struct DownloadState {
    /// What libcurl's offer of bytes came to.
    enum Take {
        case taken
        /// Not now: the transfer is to pause, and libcurl to offer the same again.
        case pause
        case failed(any Error)
    }

    private static let chunkSize = 256 * 1024
    /// On a lane, whatever came is written after such a while.
    private static let longestGathering = Duration.milliseconds(50)
    /// How many chunks a transfer always has: one to gather and one to write.
    private static let ownChunks = 2
    private static let mostChunks = 8
    /// What libcurl offers at once at most (CURLOPT_WRITEFUNCTION(3)).
    private static let maximumOffer = Int(CURL_MAX_WRITE_SIZE)

    private let sink: any HTTPResponseSink
    /// Set on a lane.
    private let turn: DownloadLane.Turn?
    private let queue = WriteQueue()
    /// Has a writer thread write what is in the queue.
    private let writeElsewhere: (WriteQueue) throws(TransferError) -> Void
    private let extraChunks: ChunkAllowance
    private var pace: Pace
    private let progress: (@Sendable (Int64) -> Void)?
    private var gathering: WriteChunk?
    /// On a lane, how large the present chunk may become: it ends at a multiple of its size in the file, as the system has less to do for whole pages.
    private var laneLimit = 0
    /// On a lane, when it wrote last.
    private var wroteAt = ContinuousClock.now
    private var spares: [TransferBuffer] = []
    /// How many chunks there are, wherever they are.
    private var chunks = 0
    /// How many of them are handed over to be written.
    private var writing = 0
    private var written: Int64 = 0
    private var reported: Int64 = 0
    private(set) var isPaused = false
    /// Whether the transfer is paused until there is a chunk to gather.
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

    /// Set while the transfer is paused for the rate limits: when to ask again.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Whether there is something to take back, or to write, soon, of which the loop is not told.
    var isWriting: Bool { writing > 0 || turn != nil && gathering?.count ?? 0 > 0 }

    /// Whether the sink has all that came so far.
    var isWritten: Bool { writing == 0 && gathering?.count ?? 0 == 0 }

    /// Shows the sink the head of the final answer.
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

    /// Gathers what comes, and writes it on this thread as soon as there is a chunk of it.
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

    /// Takes back what was written, and has written what was gathered if the writer has nothing else to do: called when libcurl has nothing more to
    /// offer at the moment, so that as much as possible is written at once.
    ///
    /// - Parameter isEnd: Whether nothing more comes; the loop is called once all is written.
    /// - Throws: What the sink threw.
    mutating func settle(isEnd: Bool = false) throws {
        // What comes slowly is not held back for long.
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
            // Half of them at once: a call for each one would cost more than it gains.
            let least = isEnd ? 0 : chunks / 2
            if writing <= least { isStarved = false }
            hasChanged = (isEnd || isStarved) && writing > least && queue.isWritten(downTo: least)
        }
        guard reported != written, turn?.isOver != true else { return }
        reported = written
        progress?(written)
    }

    /// The transfer is over: what was not written yet is not to be.
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
