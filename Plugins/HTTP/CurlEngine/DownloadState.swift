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

/// Hands the body of an answer to a sink by way of a writer thread: one piece is written while the next one is gathered. Confined to the loop's
/// thread.
struct DownloadState {
    /// What libcurl's offer of bytes came to.
    enum Take {
        case taken
        /// Not now: the transfer is to pause, and libcurl to offer the same again.
        case pause
        case failed(any Error)
    }

    private static let chunkSize = 256 * 1024
    /// What libcurl offers at once at most (CURLOPT_WRITEFUNCTION(3)).
    private static let maximumOffer = Int(CURL_MAX_WRITE_SIZE)

    private let sink: any HTTPResponseSink
    /// Writes a chunk on a writer thread and sends it back to the loop.
    private let writeElsewhere: (WriteChunk) throws(TransferError) -> Void
    private var pace: Pace
    private let progress: (@Sendable (Int64) -> Void)?
    private var gathering: WriteChunk?
    private var spare: WriteChunk?
    private var written: Int64 = 0
    private var isWriting = false
    private(set) var isPaused = false
    /// Whether the sink wants the body; nil before it was asked.
    private(set) var isAccepted: Bool?

    init(
        _ sink: any HTTPResponseSink, pacing: (@Sendable (Int) -> Allowance)?, progress: (@Sendable (Int64) -> Void)?,
        writeElsewhere: @escaping (WriteChunk) throws(TransferError) -> Void
    ) {
        self.sink = sink
        self.writeElsewhere = writeElsewhere
        self.progress = progress
        pace = Pace(pacing)
    }

    /// Set while the transfer is paused for the rate limits: when to ask again.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Whether the sink has all that came so far.
    var isWritten: Bool { !isWriting && gathering == nil }

    /// Shows the sink the head of the final answer.
    mutating func begin(_ head: HTTPResponseHead) throws {
        if isAccepted == nil { isAccepted = try sink.accepts(head) }
    }

    mutating func take(_ bytes: UnsafeRawBufferPointer) -> Take {
        let chunk = gathering ?? spare ?? WriteChunk(storage: TransferBuffer(count: Self.chunkSize))
        let end = chunk.count + bytes.count
        guard unsafe end <= chunk.storage.bytes.count, pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        unsafe UnsafeMutableRawBufferPointer(rebasing: chunk.storage.bytes[chunk.count..<end]).copyMemory(from: bytes)
        if gathering == nil { spare = nil }
        gathering = WriteChunk(storage: chunk.storage, count: end)
        guard unsafe end + Self.maximumOffer > chunk.storage.bytes.count else { return .taken }
        do {
            try handOver()
        } catch {
            return .failed(error)
        }
        return .taken
    }

    /// Has written what was gathered: called when libcurl has nothing more to offer at the moment, so that as much as possible is written at
    /// once.
    mutating func flush() throws { try handOver() }

    /// Takes a chunk back from the writer thread.
    mutating func receive(_ chunk: WriteChunk) throws {
        isWriting = false
        if let failure = chunk.failure { throw failure }
        written += Int64(chunk.count)
        progress?(written)
        spare = WriteChunk(storage: chunk.storage)
        try handOver()
    }

    mutating func unpause() {
        isPaused = false
        pace.resumesAt = nil
    }

    private mutating func handOver() throws(TransferError) {
        guard !isWriting, let chunk = gathering else { return }
        gathering = nil
        isWriting = true
        try writeElsewhere(chunk)
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
