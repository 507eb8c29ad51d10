import TransferCore

/// Where the bytes of a request's body come from.
enum BodySource {
    case none
    case bytes([UInt8], position: Int)
    case file(FileBody)
}

/// What a transfer still has to send, and how fast it may. Confined to the loop's thread.
struct UploadState {
    /// What libcurl's demand for bytes came to.
    enum Read {
        case bytes(Int)
        /// Nothing now: the transfer is to pause.
        case pause
        case failed(TransferError)
    }

    private var source: BodySource
    private let pacing: (@Sendable (Int) -> Allowance)?
    private let progress: (@Sendable (Int64) -> Void)?
    /// How many bytes the rate limits allowed that were not read yet.
    private var credit = 0
    private(set) var sent = SentBytes()
    /// Set while the transfer is paused for the rate limits: when to ask again.
    private(set) var resumesAt: ContinuousClock.Instant?
    private(set) var isPaused = false

    init(source: BodySource, pacing: (@Sendable (Int) -> Allowance)?, progress: (@Sendable (Int64) -> Void)?) {
        self.source = source
        self.pacing = pacing
        self.progress = progress
    }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Read {
        let wanted = Int(min(Int64(buffer.count), remaining))
        guard wanted > 0 else { return .bytes(0) }
        let allowed = min(wanted, allowance(upTo: wanted))
        guard allowed > 0 else {
            isPaused = true
            return .pause
        }
        switch unsafe readSource(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<allowed])) {
        case .bytes(let count):
            credit -= count
            sent.limit += Int64(count)
            return .bytes(count)
        case .later:
            isPaused = true
            return .pause
        case .failed(let error):
            return .failed(error)
        }
    }

    mutating func receive(_ chunk: FileChunk) {
        if case .file(let body) = source { body.receive(chunk) }
    }

    mutating func unpause() {
        isPaused = false
        resumesAt = nil
    }

    mutating func report(_ taken: Int64) {
        guard taken > sent.taken else { return }
        sent.taken = taken
        progress?(taken)
    }

    private var remaining: Int64 {
        switch source {
        case .none: 0
        case .bytes(let bytes, let position): Int64(bytes.count - position)
        case .file(let body): body.remaining
        }
    }

    private mutating func allowance(upTo limit: Int) -> Int {
        guard let pacing else {
            credit = limit
            return limit
        }
        if credit <= 0 {
            let allowance = pacing(limit)
            credit = min(allowance.bytes, limit)
            // A wait of nothing would keep the thread busy with asking.
            if credit <= 0 { resumesAt = .now + max(allowance.retryAfter, .milliseconds(1)) }
        }
        return credit
    }

    private mutating func readSource(into buffer: UnsafeMutableRawBufferPointer) -> FileBody.Read {
        switch source {
        case .none:
            return .bytes(0)
        case .bytes(let bytes, let position):
            let end = position + buffer.count
            unsafe bytes.withUnsafeBytes { unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<end])) }
            source = .bytes(bytes, position: end)
            return .bytes(buffer.count)
        case .file(let body):
            return unsafe body.read(into: buffer)
        }
    }
}
