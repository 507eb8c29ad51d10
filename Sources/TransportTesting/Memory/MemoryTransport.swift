import Foundation
import Locking
public import TransferCore
import TransportSupport

/// The reference implementation of a transport: it moves files into this process's memory and out of it, and fails as it is told.
///
/// For tests of queues, and to read before writing a transport. Faults, gates and what was seen are scripted from outside:
///
/// ```swift
/// let memory = MemoryTransport()
/// memory.faults.append(.cut(afterBytes: 100_000))
/// let gate = memory.gate("reel.mov", atByte: 65_536)
/// // … start the queue …
/// try await gate.reached()
/// gate.open()
/// memory.contents(of: "reel.mov")
/// ```
///
/// All of it may be called from any thread, and during attempts.
public final class MemoryTransport: Transport {
    /// The name that endpoints refer to.
    public let id: TransportID

    /// What goes wrong in attempts to come.
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
        var gates: [MemoryGate] = []
        var refusedHosts: [String: TransferError] = [:]
        var expectations: [(count: Int, latch: Latch)] = []
        var running = 0
        var peakRunning = 0
        var isShutDown = false
    }

    /// Makes a transport with nothing in it.
    ///
    /// - Parameters:
    ///   - chunkSize: How many bytes are moved at once, at least 1.
    ///   - chunksPerCheckpoint: After how many chunks a checkpoint is saved, at least 1. One is also saved before the first byte and after the last.
    ///   - acceptedSecret: The value that one of an endpoint's credentials must have; nil to accept everybody.
    public init(id: TransportID = "memory", chunkSize: Int = 64 * 1024, chunksPerCheckpoint: Int = 1, acceptedSecret: String? = nil) {
        self.id = id
        self.chunkSize = max(1, chunkSize)
        self.chunksPerCheckpoint = max(1, chunksPerCheckpoint)
        self.acceptedSecret = acceptedSecret.map(Secret.init)
    }

    /// Moves one file, chunk by chunk, on the caller's executor; reads and writes local files on threads that may block.
    ///
    /// - Throws: The faults that were scripted, and what a source that is missing or changed, a host that refuses, or a credential that is not
    ///   accepted make of themselves, as ``TransferError``; `CancellationError`; what the reporter throws.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let fault = faults.take(for: attempt.remotePath)
        let index = begin(attempt, fault)
        do {
            try await connect(to: attempt.endpoint, credentials: attempt.credentials)
            if case .fail(let error) = fault { throw error }
            let receipt: TransferReceipt
            switch attempt.payload {
            case .upload: receipt = try await send(attempt, index, reporter, fault)
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

    /// Notes that it was called; there is nothing to release.
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
                    .sourceChanged, .sourceChanged, "\(source.path) became shorter while it was sent. Send it anew.")
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

    /// Finds the upload that the checkpoint refers to, or makes one and saves where it is before anything is sent to it.
    private func findOrCreateUpload(_ attempt: FileAttempt, _ source: UploadSource, _ reporter: AttemptReporter) async throws -> String {
        let upload: String
        let position: Int64
        if let checkpoint = attempt.checkpoint {
            upload = String(decoding: checkpoint.data, as: UTF8.self)
            guard let size = state.withLock({ $0.store.size(of: upload) }), size >= checkpoint.confirmed,
                source.growth != nil || size <= source.size
            else {
                throw TransferError(.resumeLost, .uploadGone, "What was sent of \(attempt.remotePath) is gone from the other end.")
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
            throw TransferError(.credentials, .credentialsRejected, "\(host) does not accept the account's credentials; correct them.")
        }
    }

    func connectionLost(_ attempt: FileAttempt, _ what: String = "sent") -> TransferError {
        TransferError(.transient, .connectionLost, "The connection broke while \(attempt.remotePath) was \(what).")
    }
}
