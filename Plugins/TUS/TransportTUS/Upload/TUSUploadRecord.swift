import Locking
import TransferCore

/// The checkpoint and the progress of a file's uploads. Saves each offset of the server in the checkpoint before reporting the offset to the
/// queue; only ``complete(_:of:url:)`` saves nothing.
///
/// All segments of a file share one instance, which saves concurrent changes together.
actor TUSUploadRecord {
    /// One of a file's uploads on the server.
    enum Slot: Hashable, Sendable {
        case whole
        /// A segment of the file, by its number from 0.
        case segment(Int)
    }

    /// The progress of one upload, in bytes from its start.
    private struct SlotProgress {
        var sent: Int64 = 0
        var confirmed: Int64 = 0
        /// The position of the current request. It is lower than `sent` while the request sends bytes again.
        var current: Int64 = 0
    }

    private(set) var checkpoint: TUSCheckpoint
    private let reporter: AttemptReporter
    /// The current maximum number of bytes of one request.
    private let chunkLimit: @Sendable () -> Int64?
    /// The maximum number of bytes to report as confirmed. Further bytes are not verified yet.
    private let verified: Locked<Int64>
    private let progressBySlot: Locked<[Slot: SlotProgress]>

    /// The number of the last change of the checkpoint, from 1.
    private var lastChange = 0
    /// The number of the last change that is saved.
    private var lastSaved = 0
    private var isSaving = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(_ checkpoint: TUSCheckpoint, reporter: AttemptReporter, chunkLimit: @escaping @Sendable () -> Int64?) {
        self.checkpoint = checkpoint
        self.reporter = reporter
        self.chunkLimit = chunkLimit
        verified = Locked(.max)
        // The total must include the confirmed bytes of all segments, even before each of them makes progress.
        let segments = (checkpoint.segments ?? []).enumerated().map { number, segment in
            (Slot.segment(number), SlotProgress(sent: segment.confirmed ?? 0, confirmed: segment.confirmed ?? 0))
        }
        progressBySlot = Locked(Dictionary(uniqueKeysWithValues: segments))
    }

    subscript(slot: Slot) -> RemoteUpload { checkpoint[slot] }

    /// Saves the planned segments before any of them exists on the server.
    func begin(_ checkpoint: TUSCheckpoint) async throws {
        try await save { $0 = checkpoint }
    }

    /// Changes the checkpoint, and returns after the queue has stored it.
    ///
    /// - Throws: The error of ``AttemptReporter/save(_:)``.
    func save(_ change: (inout TUSCheckpoint) -> Void = { _ in }) async throws {
        change(&checkpoint)
        lastChange += 1
        let ownChange = lastChange
        while lastSaved < ownChange {
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

    /// Saves the server's offset, and then reports it.
    func confirm(_ offset: Int64, of slot: Slot, expires: Int? = nil, url: String? = nil) async throws {
        try await save { checkpoint in
            checkpoint[slot].confirmed = offset
            // At least part of the unanswered request arrived.
            if let request = checkpoint[slot].unanswered, offset > request.offset { checkpoint[slot].unanswered = nil }
            if let expires { checkpoint[slot].expires = expires }
            if let url { checkpoint[slot].url = url }
        }
        reporter.reportAuthenticatedResponse()
        report(slot) {
            $0.confirmed = offset
            $0.sent = max($0.sent, offset)
        }
    }

    /// Marks an upload as complete on the server. Saves no checkpoint, because the queue stores the file's completion next, together with the
    /// next file's checkpoint.
    ///
    /// - Parameter url: The upload's URL; nil if the server has not sent one.
    func complete(_ size: Int64, of slot: Slot, url: String?) {
        if let url { checkpoint[slot].url = url }
        checkpoint[slot].confirmed = size
        report(slot) {
            $0.confirmed = size
            $0.sent = max($0.sent, size)
        }
    }

    /// Reports the progress of reading the file back: the upload's last bytes count as confirmed in proportion to the bytes that were read back.
    nonisolated func confirmWhileReadingBack(_ read: Int64, of size: Int64, from start: Int64) {
        guard size > 0 else { return }
        let share = Double(min(read, size)) / Double(size)
        reporter.report(sent: size, confirmed: min(size - 1, start + Int64(Double(size - start) * share)))
    }

    nonisolated func reportWaiting() { reporter.reportWaiting() }

    /// Reports the position up to which the network accepted bytes. Also called on the HTTP client's thread.
    nonisolated func reportSent(_ position: Int64, of slot: Slot) {
        let isRepeated = progressBySlot.withLock { progressBySlot in
            let known = progressBySlot[slot] ?? SlotProgress()
            progressBySlot[slot, default: known].current = position
            return position != known.current && position <= known.sent
        }
        // Repeated bytes count as activity, but not as progress.
        if isRepeated { reporter.reportActivity() }
        report(slot) { $0.sent = max($0.sent, position) }
    }

    /// While a request with content runs, saves how many of its bytes the network has accepted.
    func saveCounts(_ counts: AsyncStream<Int64>, from offset: Int64, of slot: Slot) async throws {
        for await accepted in counts {
            try await save { $0[slot].unanswered = UnansweredRequest(offset: offset, accepted: accepted) }
        }
    }

    /// Removes and returns the last unanswered request, because the server's offset or response is now known. The next change saves the
    /// removal.
    @discardableResult
    func removeUnanswered(of slot: Slot) -> UnansweredRequest? {
        defer { checkpoint[slot].unanswered = nil }
        return checkpoint[slot].unanswered
    }

    /// Adds the bytes of an interrupted request to ``RemoteUpload/uncounted`` if the server's offset includes none of them, because the
    /// server may still have them. The next change saves the result.
    ///
    /// A new connection does not show that the server kept running: behind a proxy or a supervisor, a new process of the server may already
    /// accept connections.
    ///
    /// - Parameter request: The interrupted request, if this process observed the outage after it; nil to use the stored request.
    func recordUncounted(_ request: UnansweredRequest?, at offset: Int64, of slot: Slot) {
        let uncountedRequest = request ?? checkpoint[slot].uncountedRequest ?? checkpoint[slot].unanswered
        checkpoint[slot].uncountedRequest = nil
        guard let uncountedRequest, uncountedRequest.offset == offset else { return }
        checkpoint[slot].uncounted = min((checkpoint[slot].uncounted ?? 0) + uncountedRequest.accepted, RemoteUpload.sizes.upperBound)
    }

    /// Sets ``RemoteUpload/mayBeComplete``: whether the server may have completed the upload. The next change saves the value.
    func setMayBeComplete(_ value: Bool?, of slot: Slot) { checkpoint[slot].mayBeComplete = value }

    /// Saves a request that this process ended before its response. The server may fail at the same moment, and only its next response shows whether
    /// the server kept any bytes of the request.
    func saveAbandoned(_ request: UnansweredRequest, of slot: Slot) async throws {
        guard request.accepted > 0 else { return }
        try await save { $0[slot].unanswered = request }
    }

    /// Changes the progress of one upload, and reports the progress of all uploads together.
    private nonisolated func report(_ slot: Slot, _ change: (inout SlotProgress) -> Void) {
        let total = progressBySlot.withLock { progressBySlot in
            change(&progressBySlot[slot, default: SlotProgress()])
            return progressBySlot.values.reduce(into: SlotProgress()) {
                $0.sent += $1.sent
                $0.confirmed += $1.confirmed
            }
        }
        reporter.report(sent: total.sent, confirmed: min(total.confirmed, verified.withLock { $0 }))
    }

    /// Limits the number of bytes that are reported as confirmed. Further bytes are not verified yet.
    nonisolated func limitConfirmed(to bytes: Int64) {
        verified.withLock { $0 = bytes }
    }
}

extension TUSCheckpoint {
    /// The upload in a slot. If a segment is missing, the value is empty and can't be changed.
    subscript(slot: TUSUploadRecord.Slot) -> RemoteUpload {
        get {
            switch slot {
            case .whole: whole
            case .segment(let number): segments.flatMap { $0.indices.contains(number) ? $0[number] : nil } ?? RemoteUpload()
            }
        }
        set {
            switch slot {
            case .whole: whole = newValue
            case .segment(let number): if segments?.indices.contains(number) == true { segments?[number] = newValue }
            }
        }
    }
}
