import Locking
import TransferCore
import TransportSupport

/// Writes a file's content, or a range of it, to the part at the server: many requests at once, and a checkpoint now and then of what the server confirmed.
final class PartWriter: Sendable {
    private struct State {
        var prefix: AcknowledgedPrefix
        var unanswered = 0
        var failure: (any Error)?
        var isOpen = true
        /// Waits until every request is answered, or one failed.
        var drain: Once<Void>?
    }

    let client: SFTPClient
    let handle: Handle
    private let features: ServerFeatures
    private let file: FileReader
    private let reporter: AttemptReporter
    private let threads: WorkerThreads
    private let record: UploadRecord
    /// Which of the record's ranges is written.
    private let index: Int
    private let start: Int64
    /// Nil for the end of the source.
    private let end: Int64?
    private let schedule: Locked<SyncSchedule>
    private let state: Locked<State>

    /// How many requests' content is read from the disk at once.
    private static let batch: Int64 = 8

    init(
        _ handle: Handle, at client: SFTPClient, _ features: ServerFeatures, range index: Int = 0, of file: FileReader,
        recording record: UploadRecord, on threads: WorkerThreads, reporting reporter: AttemptReporter
    ) {
        self.handle = handle
        self.client = client
        self.features = features
        self.file = file
        self.record = record
        self.index = index
        (start, end) = record.bounds[index]
        self.reporter = reporter
        self.threads = threads
        var schedule = SyncSchedule(at: .now)
        schedule.didSync(start)
        self.schedule = Locked(schedule)
        state = Locked(State(prefix: AcknowledgedPrefix(from: start)))
    }

    // MARK: Content

    /// Writes everything, and returns when all requests are made; ``drained()`` waits for their answers.
    ///
    /// - Returns: Up to where the file was written.
    /// - Throws: A `TransferError`, a ``StatusFailure`` or `CancellationError`.
    func write() async throws -> Int64 {
        let (positions, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        return try await withThrowingTaskGroup(of: Int64?.self) { group in
            group.addTask {
                defer { continuation.finish() }
                return try await self.writeAll { continuation.yield($0) }
            }
            group.addTask {
                for await position in positions where self.schedule.withLock({ $0.isDue(position) }) { try await self.keep(position) }
                return nil
            }
            var size: Int64?
            while let result = try await group.next() { size = result ?? size }
            guard let size else { throw CancellationError() }
            return size
        }
    }

    private func writeAll(_ acknowledged: @escaping @Sendable (Int64) -> Void) async throws -> Int64 {
        var offset = start
        while let end = try await readableEnd(after: offset) {
            try checkFailure()
            let limit = min(end - offset, Self.batch * Int64(features.writeSize))
            let count = try await reporter.awaitAllowance(upTo: limit)
            let range = offset..<offset + count
            let requests = Int((count + Int64(features.writeSize) - 1) / Int64(features.writeSize))
            try await client.uploads.acquire(bytes: Int(count), requests: requests)
            let pieces: [[UInt8]]
            do {
                pieces = try await threads.run { [file, features] in try file.piecesNow(range, of: features.writeSize) }
                try Task.checkCancellation()
            } catch {
                client.uploads.release(bytes: Int(count), requests: requests)
                throw error
            }
            for piece in pieces {
                send(piece, at: offset, acknowledged)
                offset += Int64(piece.count)
            }
        }
        try checkFailure()
        return offset
    }

    /// Up to where there are bytes to send after an offset, once there are; nil at the end of the source.
    private func readableEnd(after offset: Int64) async throws -> Int64? {
        guard let growth = file.source.growth else {
            let end = end ?? file.source.size
            return offset < end ? end : nil
        }
        if case .growing(let end) = growth.extent, end <= offset {
            // The producer may wait for what is sent to be confirmed.
            try await drained()
            try await keep(offset)
        }
        try await growth.waitUntilReadable(at: offset)
        switch growth.extent {
        case .growing(let end): return end
        case .complete(let size): return offset < size ? size : nil
        case .failed(let error): throw error
        }
    }

    private func send(_ piece: [UInt8], at offset: Int64, _ acknowledged: @escaping @Sendable (Int64) -> Void) {
        let end = offset + Int64(piece.count)
        state.withLock { $0.unanswered += 1 }
        let request = Request.write(handle, offset: UInt64(offset), piece)
        client.submit(request, taken: { [record, index] in record.note(sent: end, of: index) }) { [self] result in
            client.uploads.release(bytes: Int(end - offset))
            let (position, drain) = note(result, for: offset..<end)
            if let position { acknowledged(position) }
            drain?.resume(.success(()))
        }
    }

    private func note(_ result: Result<Answer, TransferError>, for piece: Range<Int64>) -> (position: Int64?, drain: Once<Void>?) {
        let failure: (any Error)? =
            switch result {
            case .success(.status(let status)): status.code == .ok ? nil : StatusFailure(status)
            case .success: client.unexpected
            case .failure(let error): error
            }
        return state.withLock { state in
            state.unanswered -= 1
            if failure == nil { state.prefix.insert(piece) } else { state.failure = state.failure ?? failure }
            guard state.unanswered == 0 || state.failure != nil else { return (state.prefix.end, nil) }
            defer { state.drain = nil }
            return (failure == nil ? state.prefix.end : nil, state.drain)
        }
    }

    private func checkFailure() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Returns when the server confirmed all that was sent.
    func drained() async throws {
        let drain = Once<Void>()
        let isDrained = state.withLock { state in
            if state.unanswered == 0 || state.failure != nil { return true }
            state.drain = drain
            return false
        }
        if !isDrained { try await drain.valueUnlessCancelled() }
        try checkFailure()
    }

    // MARK: Checkpoints

    /// Makes what the server confirmed durable there, and a checkpoint that vouches for it.
    private func keep(_ position: Int64) async throws {
        guard position > record.confirmed(of: index) else { return }
        if features.offers(.fsync) { try await client.perform(.fsync(handle)) }
        try await save(position)
    }

    private func save(_ position: Int64) async throws {
        try await record.save(position, of: index)
        schedule.withLock { $0.didSync(position) }
        file.source.growth?.confirmed(before: position)
    }

    /// For the end of an attempt that was not the file's: keeps what there is if the server can say soon that it has it.
    func keepBeforeEnd() async {
        let (position, isOpen) = state.withLock { ($0.prefix.end, $0.isOpen) }
        guard isOpen, position > record.confirmed(of: index) else { return }
        // Of its own, as the attempt's task may be cancelled.
        await Task { [self] in
            if features.offers(.fsync) {
                let sync = client.begin(.fsync(handle))
                let deadline = Task {
                    try await Task.sleep(for: Self.patience)
                    sync.abandon()
                }
                defer { deadline.cancel() }
                guard case .status(let status)? = try? await sync.answer(), status.code == .ok else { return }
            }
            try? await save(position)
        }.value
    }

    /// A cancelled attempt has 100 ms to end.
    private static let patience = Duration.milliseconds(80)

    // MARK: The end

    /// What the server made of a complete part.
    struct End {
        /// Nil if it does not tell.
        var size: Int64?
        var tookTimes = true
        var tookMode = true
    }

    /// Syncs and closes the part, and looks how large it is: sent right behind the last content.
    ///
    /// - Parameters:
    ///   - times: Its modification time, in seconds since 1970; nil to leave that alone.
    ///   - mode: Its permissions; nil to leave them alone.
    func finish(times: UInt32? = nil, mode: UInt32? = nil) async throws -> End {
        let timing = times.map { client.begin(.fsetstat(handle, .times($0))) }
        let permission = mode.map { client.begin(.fsetstat(handle, .permissions($0))) }
        let sync = features.offers(.fsync) ? client.begin(.fsync(handle)) : nil
        let status = client.begin(.fstat(handle))
        close()
        try await drained()
        try await sync?.success()
        let size = try await status.attributes().size.map { Int64(clamping: $0) }
        return End(size: size, tookTimes: try await isTaken(timing), tookMode: try await isTaken(permission))
    }

    private func isTaken(_ change: PendingAnswer?) async throws -> Bool {
        do {
            try await change?.success()
            return true
        } catch is StatusFailure {
            return false
        }
    }

    /// Closes the part, once: the server may give its handle to another file then.
    func close() {
        let wasOpen = state.withLock { state in
            defer { state.isOpen = false }
            return state.isOpen
        }
        if wasOpen { client.close(handle) }
    }
}
