import TransferCore

/// The unsent bytes of a request's body, and their rate limit. Used only on the thread of ``CurlLoop``.
struct UploadState {
    enum Read {
        case bytes(Int)
        /// No bytes are available, or the rate limits allow none now. The transfer pauses.
        case pause
        case failed(any Error)
    }

    private var source: BodySource
    private let isChunked: Bool
    private var pace: TransferPacer
    private let progress: (@Sendable (Int64) -> Void)?
    /// The number of framing bytes that libcurl has added so far, because it sends the body in HTTP chunks.
    private var framing: Int64 = 0
    private(set) var sent = SentBytes()
    private(set) var isPaused = false

    init(_ pending: PendingRequest, source: BodySource) {
        self.source = source
        isChunked = pending.request.isChunked
        pace = TransferPacer(pending.isDownload ? nil : pending.pacing)
        progress = pending.isDownload ? nil : pending.progress
    }

    /// The time at which to consult the rate limits again; nil unless the rate limits pause the transfer.
    var resumesAt: ContinuousClock.Instant? { pace.resumesAt }

    /// Copies the next bytes of the body into libcurl's buffer: as many as are available, and as the rate limits allow.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Read {
        let wanted: Int
        switch source.availability(upTo: buffer.count) {
        case .bytes(let count): wanted = count
        case .later: return pause()
        case .end: return .bytes(0)
        case .failed(let error): return .failed(error)
        }
        let allowed = min(wanted, pace.credit(upTo: wanted))
        guard allowed > 0 else { return pause() }
        switch unsafe source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<allowed])) {
        case .bytes(let count):
            pace.use(count)
            sent.read += Int64(count)
            // The framing is the length in hexadecimal and two line breaks (RFC 9112, section 7.1).
            if isChunked { framing += Int64(String(count, radix: 16).utf8.count + 4) }
            return .bytes(count)
        case .later:
            return pause()
        case .failed(let error):
            return .failed(error)
        }
    }

    mutating func receive(_ buffer: FileReadBuffer) {
        source.receive(buffer)
    }

    mutating func unpause() {
        isPaused = false
        pace.resumesAt = nil
    }

    /// Updates the number of sent bytes from libcurl's count of the bytes that the socket accepted.
    mutating func report(_ uploaded: Int64) {
        // The count may also include the framing of the final, empty HTTP chunk, which `framing` does not include.
        let accepted = min(uploaded - framing, sent.read)
        guard accepted > sent.accepted else { return }
        sent.accepted = accepted
        progress?(accepted)
    }

    private mutating func pause() -> Read {
        isPaused = true
        return .pause
    }
}
