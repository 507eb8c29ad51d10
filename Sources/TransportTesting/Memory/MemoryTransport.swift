import Foundation
import Locking
public import TransferCore
import TransportSupport

/// The reference implementation of a transport. It transfers files to and from the memory of this process, and can simulate failures.
///
/// Use it in tests of queues, and read its source before you write a transport. Tests set up faults and gates, and read the results:
///
/// ```swift
/// let memory = MemoryTransport()
/// memory.faults.append(.cut(afterBytes: 100_000))
/// let gate = memory.gate("reel.mov", atByte: 65_536)
/// // … start the queue …
/// try await gate.reached()
/// gate.open()
/// let content = memory.contents(of: "reel.mov")
/// ```
///
/// All methods can be called from any thread, even during attempts.
public final class MemoryTransport: Transport {
    /// The transport's ID in endpoints.
    public let id: TransportID

    /// The faults of future attempts.
    public let faults = MemoryFaultList()

    let state = Locked(State())
    let chunkSize: Int
    let chunksPerCheckpoint: Int
    let threads = WorkerThreads(limit: 4)
    private let acceptedSecret: Secret?

    struct State: Sendable {
        var store = MemoryStore()
        var attempts: [MemoryAttempt] = []
        var listings: [RemotePath] = []
        var forms: [MemoryForm] = []
        var gates: [MemoryGate] = []
        var refusedHosts: [String: TransferError] = [:]
        var expectations: [(count: Int, latch: Latch)] = []
        var running = 0
        var peakRunning = 0
        var isShutDown = false
    }

    /// Creates a transport without content.
    ///
    /// - Parameters:
    ///   - id: The transport's ID in endpoints.
    ///   - chunkSize: The number of bytes to transfer at a time, at least 1.
    ///   - chunksPerCheckpoint: The number of steps of `chunkSize` bytes between checkpoints, at least 1. An attempt also saves a
    ///     checkpoint before the first byte of an upload and after the last byte of a file.
    ///   - acceptedSecret: The value that one of an endpoint's credentials must have; nil to accept any or no credentials.
    public init(id: TransportID = "memory", chunkSize: Int = 64 * 1024, chunksPerCheckpoint: Int = 1, acceptedSecret: String? = nil) {
        self.id = id
        self.chunkSize = max(1, chunkSize)
        self.chunksPerCheckpoint = max(1, chunksPerCheckpoint)
        self.acceptedSecret = acceptedSecret.map(Secret.init)
    }

    /// Transfers one file or form, at most `chunkSize` bytes at a time, on the caller's executor. Reads and writes local files on separate
    /// threads, which may block.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` for scripted faults, a missing or changed source, a missing or changed remote file, a
    ///   destination that can't be written, a refusing host, or a rejected credential; `CancellationError`; errors of the reporter and of
    ///   the credential provider.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let fault = faults.take(for: attempt.remotePath)
        let index = begin(attempt, fault)
        do {
            try await connect(to: attempt.endpoint, credentials: attempt.credentials)
            if case .fail(let error) = fault { throw error }
            let receipt: TransferReceipt
            switch attempt.payload {
            case .upload: receipt = try await send(attempt, index, reporter, fault)
            case .form(let form): receipt = try await send(form, attempt, index, reporter, fault)
            case .download: receipt = try await receive(attempt, index, reporter, fault)
            }
            end(index, .completed)
            return receipt
        } catch let error as TransferError {
            end(index, .failed(error))
            throw error
        } catch is CancellationError {
            end(index, .cancelled)
            throw CancellationError()
        } catch {
            end(index, .failedOtherwise(String(describing: error)))
            throw error
        }
    }

    /// Sets ``isShutDown``. This transport has nothing to release.
    public func shutdown() async {
        state.withLock { $0.isShutDown = true }
    }

    private func send(_ attempt: FileAttempt, _ index: Int, _ reporter: AttemptReporter, _ fault: MemoryFault?) async throws
        -> TransferReceipt
    {
        let source = try attempt.source
        let reader = try await SourceReader(opening: source)
        defer { reader.close() }
        let upload = try await findOrCreateUpload(attempt, source, reporter)
        let path = attempt.remotePath.description
        let cut: Int64? = if case .cut(let bytes) = fault { max(0, bytes) } else { nil }
        let start = state.withLock { $0.store.size(of: upload) ?? 0 }
        var position = start
        var confirmed = start
        var chunks = 0
        try await pass(path, at: position)
        while true {
            try Task.checkCancellation()
            let (end, isComplete) = try reader.extent()
            guard position < end else {
                if isComplete { break }
                try await source.growth?.waitUntilReadable(at: position)
                continue
            }
            if let cut, position - start >= cut { throw connectionLost(attempt) }
            let wanted = min(
                Int64(chunkSize), end - position, nextGate(path, after: position) - position,
                cut.map { start + $0 - position } ?? .max)
            let allowance = reporter.allowance(upTo: Int(wanted))
            guard allowance.bytes > 0 else {
                try await Task.sleep(for: allowance.retryAfter)
                continue
            }
            let chunk = try await reader.read(at: position, count: min(Int(wanted), allowance.bytes))
            guard !chunk.isEmpty else {
                throw TransferError(
                    .sourceChanged, .sourceChanged, "\(source.path) became shorter during the upload. Send it again.")
            }
            position += Int64(chunk.count)
            state.withLock { state in
                state.store.append(chunk, to: upload)
                state.attempts[index].bytesMoved += Int64(chunk.count)
            }
            reporter.report(sent: position, confirmed: confirmed)
            if let cut, position - start >= cut, !isComplete || position < end { throw connectionLost(attempt) }
            chunks += 1
            if chunks.isMultiple(of: chunksPerCheckpoint) || position == end {
                try await reporter.save(Checkpoint(data: Data(upload.utf8), confirmed: position))
                confirmed = position
                reporter.report(sent: position, confirmed: confirmed)
                source.growth?.confirmed(before: confirmed)
            }
            try await pass(path, at: position)
        }
        try Task.checkCancellation()
        try await reader.verifyUnchanged()
        state.withLock { $0.store.complete(upload) }
        if cut != nil { throw connectionLost(attempt) }
        return TransferReceipt(bytes: position, remoteURL: attempt.endpoint.address + path)
    }

    /// Finds the upload of the checkpoint. Without a checkpoint, creates an upload, and saves the upload's ID before its first byte arrives.
    private func findOrCreateUpload(_ attempt: FileAttempt, _ source: UploadSource, _ reporter: AttemptReporter) async throws -> String {
        let upload: String
        let position: Int64
        if let checkpoint = attempt.checkpoint {
            upload = String(decoding: checkpoint.data, as: UTF8.self)
            guard let size = state.withLock({ $0.store.size(of: upload) }), size >= checkpoint.confirmed,
                source.growth != nil || size <= source.size
            else {
                throw TransferError(.resumeLost, .uploadGone, "The upload of \(attempt.remotePath) is gone from the other end.")
            }
            position = size
        } else {
            upload = state.withLock { $0.store.create(at: attempt.endpoint.address, attempt.remotePath) }
            position = 0
        }
        if attempt.checkpoint?.confirmed != position {
            try await reporter.save(Checkpoint(data: Data(upload.utf8), confirmed: position))
        }
        reporter.report(sent: position, confirmed: position)
        return upload
    }

    func connect(to endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        let host = try endpoint.validate().host() ?? ""
        if let error = state.withLock({ $0.refusedHosts[host] }) { throw error }
        var isAccepted = acceptedSecret == nil
        for reference in endpoint.credentials {
            let secret = try await credentials.secret(for: reference)
            if let acceptedSecret, secret.reveal() == acceptedSecret.reveal() { isAccepted = true }
        }
        guard isAccepted else {
            throw TransferError(.credentials, .credentialsRejected, "\(host) rejects the account's credentials. Correct them.")
        }
    }

    func connectionLost(_ attempt: FileAttempt, _ what: String = "sent") -> TransferError {
        TransferError(.transient, .connectionLost, "The connection broke while \(attempt.remotePath) was being \(what).")
    }
}
