import Locking
import TransferCore

/// What is known of a file's uploads: made durable before it is told.
///
/// The parts of a file that move at once share one; what they have to save at the same time is saved together.
actor UploadRecord {
    /// One of a file's uploads at the server.
    enum Slot: Hashable, Sendable {
        case whole
        /// A part of the file, by its number from 0.
        case part(Int)
    }

    /// How far an upload is, in its own bytes.
    private struct Position {
        var sent: Int64 = 0
        var confirmed: Int64 = 0
        /// Up to where the last request got, which may send once more what was sent before.
        var current: Int64 = 0
    }

    private(set) var checkpoint: TUSCheckpoint
    private let reporter: AttemptReporter
    /// The most bytes that one request may bring, as far as that is known now.
    private let chunkLimit: @Sendable () -> Int64?
    /// The most bytes that are told to be confirmed, as the rest is still to be verified.
    private let verified: Locked<Int64>
    private let positions: Locked<[Slot: Position]>

    private var lastChange = 0
    private var lastSaved = 0
    private var isSaving = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(_ checkpoint: TUSCheckpoint, reporter: AttemptReporter, chunkLimit: @escaping @Sendable () -> Int64?) {
        self.checkpoint = checkpoint
        self.reporter = reporter
        self.chunkLimit = chunkLimit
        verified = Locked(.max)
        // All parts count from the beginning, whichever is heard of first.
        let parts = (checkpoint.parts ?? []).enumerated().map { number, part in
            (Slot.part(number), Position(sent: part.confirmed ?? 0, confirmed: part.confirmed ?? 0))
        }
        positions = Locked(Dictionary(uniqueKeysWithValues: parts))
    }

    subscript(slot: Slot) -> RemoteUpload { checkpoint[slot] }

    /// Puts down that nothing is there yet, and what there is to be.
    func begin(_ checkpoint: TUSCheckpoint) async throws {
        try await save { $0 = checkpoint }
    }

    /// Changes what is known, and returns when that is durable.
    func save(_ change: (inout TUSCheckpoint) -> Void = { _ in }) async throws {
        change(&checkpoint)
        lastChange += 1
        let mine = lastChange
        while lastSaved < mine {
            if isSaving {
                await withCheckedContinuation { waiters.append($0) }
            } else {
                try await saveAll()
            }
        }
    }

    private func saveAll() async throws {
        isSaving = true
        defer {
            isSaving = false
            for waiter in waiters { waiter.resume() }
            waiters = []
        }
        let change = lastChange
        checkpoint.chunkLimit = chunkLimit()
        try await reporter.save(checkpoint.encoded(atMost: verified.withLock { $0 }))
        lastSaved = change
    }

    /// Keeps what the server says that it has, and then tells it.
    func confirm(_ offset: Int64, of slot: Slot, expires: Int? = nil, url: String? = nil) async throws {
        try await save { checkpoint in
            checkpoint[slot].confirmed = offset
            // It got through, at least in part.
            if let request = checkpoint[slot].unanswered, offset > request.offset { checkpoint[slot].unanswered = nil }
            if let expires { checkpoint[slot].expires = expires }
            if let url { checkpoint[slot].url = url }
        }
        reporter.reportAnswer()
        report(slot) {
            $0.confirmed = offset
            $0.sent = max($0.sent, offset)
        }
    }

    /// Takes note that the server has all of an upload. Of that there need be no checkpoint: that the file is complete is stored next, together with
    /// what the next file has to store.
    func complete(_ size: Int64, of slot: Slot, url: String) {
        checkpoint[slot].url = url
        checkpoint[slot].confirmed = size
        report(slot) {
            $0.confirmed = size
            $0.sent = max($0.sent, size)
        }
    }

    /// Tells how far the verification of an upload came whose last bytes are not counted as confirmed before.
    nonisolated func confirmWhileReadingBack(_ read: Int64, of size: Int64, from start: Int64) {
        guard size > 0 else { return }
        let share = Double(min(read, size)) / Double(size)
        reporter.report(sent: size, confirmed: min(size - 1, start + Int64(Double(size - start) * share)))
    }

    /// Tells up to which position of an upload the network took bytes. Called on the HTTP client's thread, too.
    nonisolated func noteSent(_ position: Int64, of slot: Slot) {
        let isOldGround = positions.withLock { positions in
            let known = positions[slot] ?? Position()
            positions[slot, default: known].current = position
            return position != known.current && position <= known.sent
        }
        // What is sent once more counts for nothing, but is a sign of life.
        if isOldGround { reporter.reportActivity() }
        report(slot) { $0.sent = max($0.sent, position) }
    }

    /// Keeps how many bytes the network took of a `PATCH` that is under way.
    func keep(_ marks: AsyncStream<Int64>, from offset: Int64, of slot: Slot) async throws {
        for await taken in marks {
            try await save { $0[slot].unanswered = UnansweredRequest(offset: offset, taken: taken) }
        }
    }

    /// Takes what is known of an upload's last `PATCH`, as that is answered, or asked about, by now. Not durable before the next change is.
    @discardableResult
    func takeUnanswered(of slot: Slot) -> UnansweredRequest? {
        defer { checkpoint[slot].unanswered = nil }
        return checkpoint[slot].unanswered
    }

    /// Takes note of where a server stands that was gone after a request was cut: if it has none of that by its own word, it may have it all the
    /// same. Not durable before the next change is.
    ///
    /// - Parameter request: What this process knows of that request; nil to go by what an earlier one stored.
    func settleDoubt(_ request: UnansweredRequest?, at offset: Int64, of slot: Slot) {
        let doubtful = request ?? checkpoint[slot].doubt
        checkpoint[slot].doubtful = nil
        guard let doubtful, doubtful.offset == offset else { return }
        checkpoint[slot].uncounted = min((checkpoint[slot].uncounted ?? 0) + doubtful.taken, RemoteUpload.sizes.upperBound)
    }

    /// Keeps a request that this process ended before it was answered. The server may end at the same moment, and only its next answer shows
    /// whether it kept any of the request.
    func noteAbandoned(_ request: UnansweredRequest, of slot: Slot) async throws {
        guard request.taken > 0 else { return }
        try await save { $0[slot].unanswered = request }
    }

    private nonisolated func report(_ slot: Slot, _ change: (inout Position) -> Void) {
        let total = positions.withLock { positions in
            change(&positions[slot, default: Position()])
            return positions.values.reduce(into: Position()) {
                $0.sent += $1.sent
                $0.confirmed += $1.confirmed
            }
        }
        reporter.report(sent: total.sent, confirmed: min(total.confirmed, verified.withLock { $0 }))
    }

    /// Tells no more than so many bytes as confirmed from now on, whatever the server says: the others are still to be verified.
    nonisolated func limitConfirmed(to bytes: Int64) {
        verified.withLock { $0 = bytes }
    }
}

extension TUSCheckpoint {
    /// One of the uploads. That of a part that does not exist is empty, and can't be changed.
    subscript(slot: UploadRecord.Slot) -> RemoteUpload {
        get {
            switch slot {
            case .whole: whole
            case .part(let number): parts.flatMap { $0.indices.contains(number) ? $0[number] : nil } ?? RemoteUpload()
            }
        }
        set {
            switch slot {
            case .whole: whole = newValue
            case .part(let number): if parts?.indices.contains(number) == true { parts?[number] = newValue }
            }
        }
    }
}
