import CurlEngine
import TransferCore
import TransportSupport

/// One attempt at one file.
struct TUSUpload {
    /// How often in one attempt the server may say 409 and name another offset, before the queue is to wait.
    private static let maximumConflicts = 3

    private let server: TUSServer
    private let file: FileReader
    private let metadata: UploadMetadata
    private let reporter: AttemptReporter
    private var checkpoint: TUSCheckpoint
    private var conflicts = 0
    /// The position up to which the network took bytes in this attempt.
    private var sent: Int64 = 0
    /// The position up to which the server can have bytes of ours.
    private var reach: Int64 = 0

    init(server: TUSServer, file: FileReader, metadata: UploadMetadata, checkpoint: Checkpoint?, reporter: AttemptReporter) {
        self.server = server
        self.file = file
        self.metadata = metadata
        self.reporter = reporter
        self.checkpoint = checkpoint.flatMap(TUSCheckpoint.init) ?? TUSCheckpoint()
    }

    private var size: Int64 { file.source.size }

    mutating func run() async throws -> TransferReceipt {
        var (url, offset) = try await begin()
        do {
            while offset < size {
                offset = try await sendRest(to: url, from: offset)
            }
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            // What arrived is a part of one version, or a mix of two. Where uploads can't be removed, the error is all that says so.
            try? await server.delete(url)
            throw error
        }
        // The query may hold a signature.
        return TransferReceipt(bytes: size, remoteURL: String(url.prefix { $0 != "?" }))
    }

    /// Finds or makes the upload at the server.
    private mutating func begin() async throws -> (url: String, offset: Int64) {
        if let url = checkpoint.url {
            // What an earlier attempt sent may still be on its way through the server when this one begins.
            reach = size
            let offset = try await server.offset(of: url, length: size)
            try await confirm(offset)
            return (url, offset)
        }
        // Written before the request: whoever finds it after a crash knows that there may be an upload which bears this transfer's ID.
        try await reporter.save(checkpoint.encoded(confirmed: 0))
        let url = try await server.create(length: size, metadata: metadata)
        checkpoint = TUSCheckpoint(url: url)
        try await confirm(0)
        return (url, 0)
    }

    /// Sends all that remains in one request.
    ///
    /// - Returns: Where the server stands, by its own word.
    private mutating func sendRest(to url: String, from offset: Int64) async throws -> Int64 {
        let reporter = reporter
        let answer: TUSAnswer
        do {
            answer = try await server.send(
                .patch, to: url, headers: ["Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream"],
                body: .file(file, offset: offset, length: size - offset), pacing: { reporter.allowance(upTo: $0) },
                progress: { reporter.report(sent: offset + $0, confirmed: offset) })
        } catch let error as CurlEngineError {
            noteSent(error.sent, from: offset)
            let failure = error.transferError(.patch, at: server.origin)
            if error.neverArrived { throw failure }
            return try await settle(failure, at: url, from: offset)
        }
        noteSent(answer.response.sent, from: offset)
        guard answer.isSuccess, let confirmed = answer.offset else {
            return try await settle(try await server.refused(answer), at: url, from: offset, status: answer.status)
        }
        try checkPlausible(confirmed)
        try await confirm(confirmed)
        // It may take less than was sent. Where it stands now is asked, as is before any PATCH.
        let now = confirmed == size ? size : try await askOffset(url)
        guard now > offset else {
            throw TransferError(.transient, .badAnswer, "The server \(server.origin) kept none of the bytes that were sent.")
        }
        return now
    }

    /// After a `PATCH` that failed: asks the server what it has, as only it knows. Never sends the same offset again unasked.
    ///
    /// - Returns: Where to go on, if that makes sense at once.
    /// - Throws: The failure.
    private mutating func settle(
        _ failure: TransferError, at url: String, from offset: Int64, status: Int? = nil
    ) async throws -> Int64 {
        let now: Int64
        do {
            now = try await askOffset(url)
        } catch let error as TransferError where error.failureClass != .resumeLost {
            // It does not answer this either; the failure that came first says more.
            throw failure
        }
        if now == size { return size }
        if status == 409, now != offset, conflicts < Self.maximumConflicts {
            conflicts += 1
            return now
        }
        if status == 400 { try await noteRefusal(at: now, failure) }
        throw failure
    }

    /// A 400 may be a proxy's mood once; a second one at the same offset is an answer.
    private mutating func noteRefusal(at offset: Int64, _ failure: TransferError) async throws {
        if checkpoint.refusedOffset == offset { throw failure }
        checkpoint.refusedOffset = offset
        try await reporter.save(checkpoint.encoded(confirmed: offset))
        throw TransferError(.transient, failure.code, failure.message, cause: failure.cause)
    }

    private mutating func askOffset(_ url: String) async throws -> Int64 {
        let offset = try await server.offset(of: url, length: size)
        try checkPlausible(offset)
        try await confirm(offset)
        return offset
    }

    /// Refuses bytes that the server can't have from us.
    private func checkPlausible(_ offset: Int64) throws(TransferError) {
        guard offset <= reach else {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(server.origin) claims to have \(offset) bytes, more than the \(reach) that were sent.")
        }
    }

    private mutating func noteSent(_ bytes: SentBytes, from offset: Int64) {
        sent = max(sent, offset + bytes.taken)
        reach = max(reach, offset + bytes.limit)
    }

    private mutating func confirm(_ offset: Int64) async throws {
        sent = max(sent, offset)
        try await reporter.save(checkpoint.encoded(confirmed: offset))
        reporter.report(sent: sent, confirmed: offset)
    }
}
