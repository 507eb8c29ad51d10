import Locking
import TransferCore
import TransportSupport

/// Writes ranges of a file to the part file over one connection. Sends many requests without waiting for their responses, and regularly
/// saves checkpoints. Other writers can send other ranges of the same file.
final class PartFileWriter: Sendable {
    private struct State {
        /// By the index of the range.
        var prefixes: [Int: ConfirmedPrefix] = [:]
        /// The sum over `prefixes` of the confirmed bytes before the first gap.
        var count: Int64 = 0
        /// The number of write requests that have neither a response nor an error.
        var unanswered = 0
        var submitted = 0
        var answered = 0
        var failure: (any Error)?
        var isOpen = true
        var isSynced = false
        /// The waiting call to ``PartFileWriter/drained()``.
        var drain: SingleResult<Void>?

        var positions: [Int: Int64] { prefixes.mapValues(\.end) }

        mutating func insert(_ chunk: Range<Int64>, of index: Int) {
            guard var prefix = prefixes.removeValue(forKey: index) else { return }
            let end = prefix.end
            prefix.insert(chunk)
            prefixes[index] = prefix
            count += prefix.end - end
        }
    }

    let client: SFTPClient
    let handle: Handle
    private let features: SFTPFeatures
    private let file: FileReader
    private let reporter: AttemptReporter
    private let threads: WorkerThreads
    private let progress: UploadProgress
    private let schedule: Locked<SyncSchedule>
    private let state = Locked(State())

    /// The number of requests whose content the writer reads from the disk in one step.
    private static let batch: Int64 = 8

    init(
        _ handle: Handle, at client: SFTPClient, _ features: SFTPFeatures, of file: FileReader,
        updating progress: UploadProgress, _ schedule: SyncSchedule, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) {
        self.schedule = Locked(schedule)
        self.handle = handle
        self.client = client
        self.features = features
        self.file = file
        self.progress = progress
        self.reporter = reporter
        self.threads = threads
    }

    // MARK: Content

    /// Writes ranges until none is left. Returns when all requests have been sent; ``drained()`` waits for the responses.
    ///
    /// - Returns: The end of the last range; 0 if this writer got no range.
    /// - Throws: A `TransferError`, a ``StatusFailure`` or `CancellationError`.
    func write() async throws -> Int64 {
        let (confirmedCounts, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        return try await withThrowingTaskGroup(of: Int64?.self) { group in
            group.addTask {
                defer { continuation.finish() }
                var end: Int64 = 0
                while let range = self.progress.assignRange() {
                    self.state.withLock { $0.prefixes[range.index] = ConfirmedPrefix(from: range.start) }
                    end = try await self.write(range.index, from: range.start) { continuation.yield($0) }
                }
                return end
            }
            group.addTask {
                for await count in confirmedCounts where self.schedule.withLock({ $0.isDue(count) }) { try await self.syncAndSave() }
                return nil
            }
            var end: Int64?
            while let result = try await group.next() { end = result ?? end }
            guard let end else { throw CancellationError() }
            return end
        }
    }

    private func write(_ index: Int, from start: Int64, _ acknowledged: @escaping @Sendable (Int64) -> Void) async throws -> Int64 {
        var (offset, synced) = (start, start)
        while let claim = try await claim(index, from: offset) {
            while offset < claim.upperBound {
                try checkFailure()
                let count = try await reporter.awaitAllowance(upTo: claim.upperBound - offset)
                let range = offset..<offset + count
                // Read first: a source that hangs, such as a file of a network share, must not occupy the window of the connection.
                let chunks = try await threads.runUnlessCancelled { [file, features] in try file.chunks(range, of: features.writeSize) }
                try await client.uploads.acquire(bytes: Int(count), requests: chunks.count)
                for chunk in chunks {
                    send(chunk, of: index, at: offset, acknowledged)
                    offset += Int64(chunk.count)
                }
            }
            if let step = progress.syncStep, offset - synced >= step {
                try await drained()
                try await syncAndSave()
                synced = offset
            }
        }
        try checkFailure()
        return offset
    }

    /// Claims the next bytes of a range; nil at its end. Waits until a growing source has more bytes.
    private func claim(_ index: Int, from offset: Int64) async throws -> Range<Int64>? {
        let limit = Self.batch * Int64(features.writeSize)
        guard let growth = file.source.growth else { return progress.claim(upTo: limit, of: index) }
        if case .growing(let end) = growth.extent, end <= offset {
            // The producer may wait until the sent bytes are confirmed before it writes more. So confirm them now.
            try await drained()
            try await syncAndSave()
        }
        try await growth.waitUntilReadable(at: offset)
        let end: Int64
        switch growth.extent {
        case .growing(let size), .complete(let size): end = size
        case .failed(let error): throw error
        }
        return offset < end ? progress.claim(upTo: min(limit, end - offset), of: index) : nil
    }

    private func send(_ chunk: [UInt8], of index: Int, at offset: Int64, _ acknowledged: @escaping @Sendable (Int64) -> Void) {
        let end = offset + Int64(chunk.count)
        state.withLock { state in
            state.unanswered += 1
            state.submitted += 1
        }
        let request = Request.write(handle, offset: UInt64(offset), chunk)
        client.submit(request, onHandover: { [progress] in progress.update(sent: end, of: index) }) { [self] result in
            client.uploads.release(bytes: Int(end - offset))
            let (count, drain) = recordResponse(result, for: offset..<end, of: index)
            if let count { acknowledged(count) }
            drain?.resume(.success(()))
        }
    }

    /// - Returns: The new value of `State.count`, or nil after a failure; and the waiting call to ``drained()`` to resume, if any.
    private func recordResponse(
        _ result: Result<SFTPResponse, TransferError>, for chunk: Range<Int64>, of index: Int
    ) -> (count: Int64?, drain: SingleResult<Void>?) {
        let failure: (any Error)? =
            switch result {
            case .success(.status(let status)): status.code == .ok ? nil : StatusFailure(status)
            case .success: client.unexpectedResponseError
            case .failure(let error): error
            }
        return state.withLock { state in
            state.unanswered -= 1
            if case .success = result { state.answered += 1 }
            if failure == nil { state.insert(chunk, of: index) } else { state.failure = state.failure ?? failure }
            guard state.unanswered == 0 || state.failure != nil else { return (state.count, nil) }
            defer { state.drain = nil }
            return (failure == nil ? state.count : nil, state.drain)
        }
    }

    private func checkFailure() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Waits until the server has acknowledged all sent bytes. Throws the error of a failed request.
    func drained() async throws {
        let drain = SingleResult<Void>()
        let isDrained = state.withLock { state in
            if state.unanswered == 0 || state.failure != nil { return true }
            state.drain = drain
            return false
        }
        if !isDrained { try await drain.valueUnlessCancelled() }
        try checkFailure()
    }

    // MARK: Checkpoints

    private func syncAndSave() async throws {
        let (positions, count) = state.withLock { ($0.positions, $0.count) }
        guard progress.isOutdated(positions) else { return }
        if features.offers(.fsync) {
            try await finish(beginSync())
            progress.didSync()
        }
        try await save(positions)
        schedule.withLock { $0.didSync(count) }
    }

    private struct PendingSync {
        let response: PendingResponse
        let writesBefore: Int
    }

    private func beginSync() -> PendingSync {
        let writes = state.withLock { $0.submitted }
        return PendingSync(response: client.begin(.fsync(handle)), writesBefore: writes)
    }

    /// Waits for a sync, but at most 80 ms after the attempt was cancelled.
    ///
    /// If the sync fails, or its result is unknown, later checkpoints confirm no more bytes. A server reports lost bytes only once, so a
    /// later sync would succeed although bytes are lost.
    private func finish(_ sync: PendingSync) async throws {
        // A separate task, because the attempt's task may be cancelled.
        let result = Task { try await sync.response.success() }
        do {
            try await withTaskCancellationHandler {
                try await result.value
            } onCancel: {
                Task {
                    try await Task.sleep(for: Self.syncTimeLimit)
                    sync.response.abandon()
                }
            }
        } catch {
            if error is StatusFailure || mayHaveStarted(sync) {
                await progress.endAfterFailedSync(isInterrupted: !(error is StatusFailure) && !client.isOpen)
            }
            throw error
        }
    }

    /// Returns whether the server may have started a sync, although no response arrived. Servers process the requests for one handle in
    /// order, so the sync has not started if the connection broke before the server had responded to all earlier writes.
    private func mayHaveStarted(_ sync: PendingSync) -> Bool {
        client.isOpen || sync.response.isSent && state.withLock { $0.answered } >= sync.writesBefore
    }

    /// Saves a checkpoint for all confirmed bytes. Call this method after ``finish(times:mode:syncs:)``, which syncs these bytes if the
    /// server can sync.
    func saveSynced() async throws {
        let positions = state.withLock { $0.positions }
        if progress.isOutdated(positions) { try await save(positions) }
    }

    private func save(_ positions: [Int: Int64]) async throws {
        try await progress.save(positions)
        // A growing source has only the range with the index 0.
        if let growth = file.source.growth, let position = positions[0] { growth.confirmed(before: position) }
    }

    /// Saves a checkpoint at the end of an incomplete attempt. If the server offers syncs and does not sync the bytes in time, the checkpoint
    /// stores them as acknowledged, and the next attempt checks them.
    func saveBeforeEnd() async {
        let (positions, isOpen, isSynced) = state.withLock { ($0.positions, $0.isOpen, $0.isSynced) }
        guard progress.isOutdated(positions) else { return }
        // A separate task, because the attempt's task may be cancelled.
        await Task { [self] in
            if isSynced || !features.offers(.fsync) { return try? await save(positions) }
            if isOpen, await syncWithinLimit() { return try? await save(positions) }
            try? await progress.save(acknowledged: positions)
        }.value
    }

    private func syncWithinLimit() async -> Bool {
        let sync = beginSync()
        let deadline = Task {
            try await Task.sleep(for: Self.syncTimeLimit)
            sync.response.abandon()
        }
        defer { deadline.cancel() }
        do {
            try await finish(sync)
            return true
        } catch {
            return false
        }
    }

    /// A cancelled attempt must end within 100 ms.
    private static let syncTimeLimit = Duration.milliseconds(80)

    // MARK: Completion

    struct End {
        /// The size in bytes; nil if the server does not report it.
        var size: Int64?
        var acceptedTimes = true
        var acceptedMode = true
    }

    /// Sets the times and permissions of the part file, syncs it, requests its size, and closes it. Sends these requests before the server
    /// has confirmed all content.
    ///
    /// - Parameters:
    ///   - times: The access and modification time to set, in seconds since 1970; nil to keep both.
    ///   - mode: The permissions to set; nil to keep them.
    ///   - syncs: Whether to sync the part file; nil to sync it if `features` includes `fsync`.
    /// - Throws: A `TransferError`, a ``StatusFailure`` or `CancellationError`. The class of the `TransferError` is `resumeLost` if the
    ///   sync fails while checkpoints confirm bytes that no sync covers.
    func finish(times: UInt32? = nil, mode: UInt32? = nil, syncs: Bool? = nil) async throws -> End {
        let timing = times.map { client.begin(.fsetstat(handle, .times($0))) }
        let permission = mode.map { client.begin(.fsetstat(handle, .permissions($0))) }
        let sync = syncs ?? features.offers(.fsync) ? beginSync() : nil
        let status = client.begin(.fstat(handle))
        close()
        do {
            try await drained()
        } catch {
            // After a failed write, the sync probably fails as well.
            if let sync { try? await finish(sync) }
            throw error
        }
        do {
            if let sync { try await finish(sync) }
        } catch let failure as StatusFailure where progress.confirmsUnsyncedBytes {
            throw TransferError(
                .resumeLost, .invalidResponse, "\(client.serverName) could not sync the file, so bytes may be lost. The upload restarts.",
                cause: failure.status.message)
        }
        state.withLock { $0.isSynced = sync != nil }
        // The caller only compares the size with the number of sent bytes, so clamping is safe.
        let size = try await status.attributes().size.map { Int64(clamping: $0) }
        return End(size: size, acceptedTimes: try await hasSucceeded(timing), acceptedMode: try await hasSucceeded(permission))
    }

    private func hasSucceeded(_ change: PendingResponse?) async throws -> Bool {
        do {
            try await change?.success()
            return true
        } catch is StatusFailure {
            return false
        }
    }

    /// After the first close, the server may reuse the handle for another file, so only the first call closes the part file.
    func close() {
        let wasOpen = state.withLock { state in
            defer { state.isOpen = false }
            return state.isOpen
        }
        if wasOpen { client.close(handle) }
    }
}

extension FileReader {
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/sourceChanged`` if the file ends early.
    fileprivate func chunks(_ range: Range<Int64>, of size: Int) throws(TransferError) -> [[UInt8]] {
        var chunks: [[UInt8]] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let end = min(offset + Int64(size), range.upperBound)
            chunks.append(try bytes(offset..<end))
            offset = end
        }
        return chunks
    }
}
