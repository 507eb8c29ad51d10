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

/// Passes the body of a response to a sink. On a ``DedicatedLoop``, writes on the loop's own thread. On the shared loop, a writer thread writes
/// full buffers while the loop fills the next ones, so both threads work at the same time. Used only on the thread of ``CurlLoop``.
struct DownloadState {
    /// Whether the bytes that libcurl offered were accepted.
    enum OfferResult {
        case accepted
        /// No bytes can be accepted now. The transfer pauses, and libcurl offers the same bytes again.
        case pause
        case failed(any Error)
    }

    private static let bufferSize = 256 * 1024
    /// The time after which a dedicated loop writes the bytes that it has gathered, even if they do not fill a buffer.
    private static let maximumGatheringTime = Duration.milliseconds(50)
    /// The number of buffers that each transfer can always allocate: one to fill and one to write.
    private static let guaranteedBuffers = 2
    /// The maximum number of buffers of one transfer.
    private static let maximumBuffers = 8
    /// The maximum number of bytes that libcurl offers in one call (CURLOPT_WRITEFUNCTION(3)).
    private static let maximumOffer = Int(CURL_MAX_WRITE_SIZE)

    private let sink: any HTTPResponseSink
    /// The download's reservation of a dedicated loop; nil on the shared loop.
    private let reservation: DedicatedLoop.Reservation?
    private let queue = WriteQueue()
    private let requestWriter: (WriteQueue) throws(TransferError) -> Void
    private let extraBuffers: BufferBudget
    private var pace: TransferPacer
    private let progress: (@Sendable (Int64) -> Void)?
    /// The buffer that the loop fills; nil while the loop has no buffer.
    private var gathering: WriteBuffer?
    /// On a dedicated loop, the number of bytes to gather before the next write. With this limit, writes end at file offsets that are multiples of
    /// `bufferSize`, because the system writes whole pages faster.
    private var gatheringLimit = 0
    /// On a dedicated loop, the time of the last write.
    private var wroteAt = ContinuousClock.now
    private var spares: [TransferBuffer] = []
    private var allocatedBuffers = 0
    /// The number of buffers that were passed to a writer thread and have not come back yet.
    private var writing = 0
    private var written: Int64 = 0
    /// The last value that was passed to `progress`.
    private var reported: Int64 = 0
    private(set) var isPaused = false
    /// Whether the transfer is paused because no buffer is free.
    private(set) var isStarved = false
    /// Whether the sink accepts the body; nil until the sink has decided.
    private(set) var isAccepted: Bool?

    init(
        _ sink: any HTTPResponseSink, on reservation: DedicatedLoop.Reservation?, pacing: (@Sendable (Int) -> Allowance)?,
        progress: (@Sendable (Int64) -> Void)?, extraBuffers: BufferBudget,
        requestWriter: @escaping (WriteQueue) throws(TransferError) -> Void
    ) {
        self.sink = sink
        self.reservation = reservation
        self.extraBuffers = extraBuffers
        self.requestWriter = requestWriter
        self.progress = progress
        pace = TransferPacer(pacing)
    }

    /// The time at which to consult the rate limits again; nil unless the rate limits pause the transfer.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Whether the loop must soon take back or write buffers, even if no command wakes it.
    var isWriting: Bool { writing > 0 || reservation != nil && gathering?.count ?? 0 > 0 }

    /// Whether the sink has written all bytes that arrived so far.
    var isWritten: Bool { writing == 0 && gathering?.count ?? 0 == 0 }

    /// Passes the head of the final response to the sink, which decides whether to accept the body.
    mutating func begin(_ head: HTTPResponseHead) throws {
        if isAccepted == nil { isAccepted = try sink.accepts(head) }
    }

    /// Takes bytes of the body from libcurl, either all of them or none.
    mutating func accept(_ bytes: UnsafeRawBufferPointer) -> OfferResult {
        if let reservation { return unsafe gather(bytes, reservation) }
        guard let buffer = gathering ?? makeBuffer() else {
            isPaused = true
            isStarved = true
            return .pause
        }
        gathering = buffer
        let end = buffer.count + bytes.count
        guard unsafe end <= buffer.storage.bytes.count, pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.storage.bytes[buffer.count..<end]).copyMemory(from: bytes)
        gathering?.count = end
        guard unsafe end + Self.maximumOffer > buffer.storage.bytes.count else { return .accepted }
        do {
            try handOver()
        } catch {
            return .failed(error)
        }
        return .accepted
    }

    /// Gathers bytes in a buffer, and writes each full buffer on this thread.
    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ reservation: DedicatedLoop.Reservation) -> OfferResult {
        guard pace.cover(bytes.count) else {
            isPaused = true
            return .pause
        }
        pace.use(bytes.count)
        var rest = unsafe bytes[...]
        do {
            while unsafe !rest.isEmpty {
                var buffer = gathering ?? WriteBuffer(storage: spares.popLast() ?? TransferBuffer(count: Self.bufferSize))
                if buffer.count == 0 { gatheringLimit = Self.bufferSize - Int(truncatingIfNeeded: sink.offset % Int64(Self.bufferSize)) }
                let end = unsafe min(buffer.count + rest.count, gatheringLimit)
                let added = unsafe rest.prefix(end - buffer.count)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.storage.bytes[buffer.count..<end])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: added))
                unsafe rest = rest.dropFirst(added.count)
                buffer.count = end
                gathering = buffer
                if end == gatheringLimit { try writeGathered(reservation) }
            }
        } catch {
            return .failed(error)
        }
        return .accepted
    }

    private mutating func writeGathered(_ reservation: DedicatedLoop.Reservation) throws {
        wroteAt = .now
        guard let buffer = gathering, buffer.count > 0 else { return }
        try reservation.beginWriting()
        defer { reservation.endWriting() }
        try sink.write(unsafe UnsafeRawBufferPointer(rebasing: buffer.storage.bytes[..<buffer.count]).bytes)
        written += Int64(buffer.count)
        gathering?.count = 0
    }

    /// Takes back written buffers, and passes the gathered bytes to a writer thread if no buffer is being written or the body is complete. On a
    /// dedicated loop, writes the gathered bytes if they have waited long enough or the body is complete. Waiting keeps writes large.
    ///
    /// - Parameter isEnd: Whether the body is complete. The loop then receives a notification when all bytes are written.
    /// - Throws: The sink's error; a `TransferError` if no writer thread can start; or, on a dedicated loop, the error that ended the
    ///   caller's wait.
    mutating func advance(isEnd: Bool = false) throws {
        // Limits the delay of bytes that arrive slowly.
        if let reservation, isEnd || ContinuousClock.now - wroteAt >= Self.maximumGatheringTime { try writeGathered(reservation) }
        var hasChanged = reservation == nil
        while hasChanged {
            for buffer in queue.collectWritten() {
                writing -= 1
                if let failure = buffer.failure { throw failure }
                written += Int64(buffer.count)
                spares.append(buffer.storage)
            }
            if isEnd || writing == 0 { try handOver() }
            // Requests a notification only after half of the buffers are written, because one notification for each buffer would be slower.
            let allowedUnwritten = isEnd ? 0 : allocatedBuffers / 2
            if writing <= allowedUnwritten { isStarved = false }
            hasChanged = (isEnd || isStarved) && writing > allowedUnwritten && queue.requestNotification(atUnwritten: allowedUnwritten)
        }
        guard reported != written, reservation?.isOver != true else { return }
        reported = written
        progress?(written)
    }

    mutating func close() {
        queue.close()
        extraBuffers.left += max(0, allocatedBuffers - Self.guaranteedBuffers)
        allocatedBuffers = 0
    }

    mutating func unpause() {
        isPaused = false
        pace.resumesAt = nil
    }

    /// Returns a free buffer; nil if the transfer must wait for one.
    private mutating func makeBuffer() -> WriteBuffer? {
        if let storage = spares.popLast() { return WriteBuffer(storage: storage) }
        if allocatedBuffers >= Self.guaranteedBuffers {
            guard allocatedBuffers < Self.maximumBuffers, extraBuffers.left > 0 else { return nil }
            extraBuffers.left -= 1
        }
        allocatedBuffers += 1
        return WriteBuffer(storage: TransferBuffer(count: Self.bufferSize))
    }

    private mutating func handOver() throws(TransferError) {
        guard let buffer = gathering, buffer.count > 0 else { return }
        gathering = nil
        writing += 1
        if queue.append(buffer) { try requestWriter(queue) }
    }

    /// Writes a buffer to the sink. Called on a writer thread.
    ///
    /// - Returns: The buffer, with the sink's error if the write failed.
    static func write(_ buffer: WriteBuffer, to sink: any HTTPResponseSink) -> WriteBuffer {
        var buffer = buffer
        do {
            try sink.write(unsafe UnsafeRawBufferPointer(rebasing: buffer.storage.bytes[..<buffer.count]).bytes)
        } catch {
            buffer.failure = error
        }
        return buffer
    }
}
