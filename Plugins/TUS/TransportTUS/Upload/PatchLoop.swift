import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

/// Sends the bytes of one upload with `PATCH` requests, starting at the server's offset.
struct PatchLoop {
    /// The content size, in bytes, up to which every server should respond within the stall timeout.
    private static let quickContent: Int64 = 1 << 20

    var server: TUSServer
    let file: FileReader
    let record: TUSUploadRecord
    let slot: TUSUploadRecord.Slot
    /// The range of the file that this upload contains. For a growing source, it has no end.
    let range: Range<Int64>
    var chunks: ChunkPlan
    var check: ContentCheck
    let threads: WorkerThreads
    let reporter: AttemptReporter
    let url: String

    /// The running checksum of all content before the current offset; nil if it is unknown.
    var contentHash: RunningChecksum?

    /// The number of consecutive requests whose content did not match its checksum; see ``maximumMismatches``.
    var mismatches = 0
    /// The last computed checksum, and the range of its bytes.
    var lastChecksum: (range: Range<Int64>, header: String)?
    /// The number of offset conflicts and version changes; see ``maximumConflicts``.
    var conflicts = 0
    /// The end of the bytes that may have been sent, in this attempt or an earlier one.
    var reach: Int64 = 0
    /// The highest confirmed position. The bytes of a growing source before this position can't be read again.
    var released: Int64 = 0
    /// Whether the next request sends `Expect: 100-continue` (RFC 9110, section 10.1.1). Without this header, a server that rejects the
    /// content may close the connection without reading the content, and the server's response is lost.
    var expectsContinue = false
    /// For a request that is repeated after rejected credentials: how often the app's header hook had renewed the headers before the request was
    /// first sent. Otherwise nil.
    var renewalsBeforeRejection: Int?

    init(
        server: TUSServer, file: FileReader, record: TUSUploadRecord, slot: TUSUploadRecord.Slot, range: Range<Int64>, chunks: ChunkPlan,
        check: ContentCheck, threads: WorkerThreads, reporter: AttemptReporter, url: String
    ) {
        self.server = server
        self.file = file
        self.record = record
        self.slot = slot
        self.range = range
        self.chunks = chunks
        self.check = check
        self.threads = threads
        self.reporter = reporter
        self.url = url
    }

    /// The progress of an upload with the IETF protocol.
    var resource = ResourceProgress()
    /// Whether the server knows the length of the upload.
    var isLengthDeclared = true
    /// The maximum size of a stream on the server; nil if it is unknown.
    var maximumSize: Int64?
    private var window = StreamWindow()
    /// Whether the next request declares the length, because the server requires the length early or may have missed it.
    var sendsLengthNow = false

    var growth: SourceGrowth? { file.source.growth }

    /// The length of the upload in bytes; nil while it is unknown.
    var length: Int64? {
        guard let growth else { return range.upperBound - range.lowerBound }
        return if case .complete(let size) = growth.extent { size } else { growth.length }
    }

    /// Waits for bytes after an offset, and returns the end of the bytes to send next. Returns nil if the upload is finished
    /// (``isFinished(at:of:)``).
    ///
    /// - Throws: The error of the app's producer, an error for a stream that is too large, or `CancellationError`.
    private mutating func end(after offset: Int64) async throws -> Int64? {
        guard let growth else { return length.flatMap { isFinished(at: offset, of: $0) ? nil : $0 } }
        let minimum = max(chunks.multiple, chunks.limits.minimumAppendSize ?? 0)
        try await growth.waitUntilReadable(upTo: offset + minimum)
        switch growth.extent {
        case .growing(let end):
            try server.checkSize(end, atMost: maximumSize)
            let count = max(window.byteCount(from: offset, to: end), min(end - offset, minimum))
            return offset + max(chunks.multiple, count - count % chunks.multiple)
        case .complete(let size):
            try server.checkSize(size, atMost: maximumSize)
            return isFinished(at: offset, of: size) ? nil : size
        case .failed(let error): throw error
        }
    }

    /// Returns whether the upload needs no more requests. In tus, the server must have all bytes and know the length. In the IETF protocol, the
    /// server must have completed the upload.
    private func isFinished(at offset: Int64, of length: Int64) -> Bool {
        server.dialect.ietf == nil ? offset >= length && isLengthDeclared : resource.isComplete
    }

    /// The maximum number of bytes that the server can have received in all attempts together.
    var available: Int64 {
        switch growth?.extent {
        case nil: range.upperBound - range.lowerBound
        case .growing(let end), .complete(let end): min(length ?? .max, end)
        // The position of a failed producer is unknown. No more bytes are sent; the attempt fails.
        case .failed: length ?? .max
        }
    }

    /// Requests the server's offset, unless the caller knows it, and sends the remaining bytes.
    mutating func resume(from known: TUSServer.RemoteOffset? = nil) async throws {
        // Bytes of an earlier attempt may still be in transit.
        reach = available
        expectsContinue = true
        released = await record[slot].confirmed ?? 0
        let (offset, tusResponse) = if let known { known } else { try await remoteOffset() }
        if server.dialect.ietf != nil {
            try await readState(tusResponse, at: offset)
            resource.wasCompleteBefore = resource.isComplete
        } else if growth != nil {
            isLengthDeclared = tusResponse.length != nil
        }
        if growth != nil { try checkPlausible(offset) }
        if offset < length ?? .max { try await saveUnverified(offset - (record[slot].confirmed ?? 0)) }
        let expires = tusResponse.expires
        if offset < length ?? .max, let time = await expiry(expires), time <= tusResponse.serverTime {
            throw TransferError(.resumeLost, .uploadGone, "The upload at \(server.origin) has expired.")
        }
        // With the IETF protocol, the offset includes all stored bytes.
        if server.dialect.ietf == nil {
            await record.recordUncounted(server.profiles.requestBeforeOutage(of: url), at: offset, of: slot)
        }
        let interrupted = await record.removeUnanswered(of: slot)
        server.profiles.forgetInterruptedRequest(of: url)
        chunks.learn(from: interrupted, at: offset)
        try await confirm(offset, expires: expires)
        try await send(from: offset)
    }

    /// The reported expiry of the upload, otherwise the stored expiry.
    private func expiry(_ reported: Int?) async -> Int? {
        if let reported { return reported }
        return await record[slot].expires
    }

    /// Sends all remaining bytes.
    ///
    /// - Parameter offset: The server's offset.
    mutating func send(from offset: Int64) async throws {
        reach = max(reach, offset)
        if offset < length ?? .max { try await selectCheck(at: offset) }
        if offset == 0, case .eachRequest(let algorithm) = check { contentHash = RunningChecksum(algorithm) }
        var offset = offset
        while let end = try await end(after: offset) { offset = try await sendNext(from: offset, to: end) }
    }

    /// Saves the server's offset.
    ///
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/sourceLost`` if the server lost bytes of a stream, which can't be read again.
    mutating func confirm(_ offset: Int64, expires: Int?) async throws {
        guard growth == nil || offset >= released else {
            throw TransferError(
                .sourceLost, .producerGone,
                "The server \(server.origin) lost bytes of a stream: it has \(offset) of \(released) confirmed bytes. "
                    + "Enqueue the stream again.")
        }
        released = max(released, offset)
        try await record.confirm(offset, of: slot, expires: expires)
        growth?.confirmed(before: offset)
    }

    /// Sends the remaining bytes, or as many of them as fit into one request.
    ///
    /// - Returns: The server's offset.
    private mutating func sendNext(from offset: Int64, to end: Int64) async throws -> Int64 {
        let count = chunks.next(remaining: end - offset)
        let declaration = isLengthDeclared ? nil : length.flatMap { sendsLengthNow || offset + count == $0 ? $0 : nil }
        if declaration != nil { sendsLengthNow = true }
        let renewals = server.client.renewals
        let checksum = try await checksum(offset..<offset + count)
        let completes = server.dialect.ietf != nil && offset + count == length
        if completes { try await saveMayBeComplete() }
        let sentExpect = expectsContinue
        let watch = RequestWatch()
        let tusResponse: TUSResponse
        do {
            tusResponse = try await patch(from: offset, count: count, checksum, declaring: declaration, watch)
        } catch let error as CurlEngineError {
            reach = max(reach, offset + error.sent.read)
            if completes, error.sent.read < count || error.cannotHaveArrived { try await restoreMayBeComplete() }
            record.reportSent(offset + error.sent.accepted, of: slot)
            try await saveInterruption(UnansweredRequest(offset: offset, accepted: error.sent.accepted))
            let failure = server.client.transferError(error, at: url, isEndpoint: false)
            if error.cannotHaveArrived || error.kind == .shutDown { throw failure }
            if error.wasServerGone { server.profiles.recordOutage(of: url) }
            let isLost = error.kind == .connectionLost || error.kind == .outcomeUnknown
            let mayBeRefused = !sentExpect && isLost && !error.wasServerGone && error.sent.accepted < count
            return try await recover(failure, from: offset, checksum, count: count, mayBeRefused: mayBeRefused)
        } catch let error as CancellationError {
            let request = UnansweredRequest(offset: offset, accepted: watch.accepted)
            server.profiles.record(request, of: url)
            await Task { [record, slot] in try? await record.saveAbandoned(request, of: slot) }.value
            throw error
        }
        let wasUnanswered = await record.removeUnanswered(of: slot) != nil
        reach = max(reach, offset + tusResponse.response.sent.read)
        record.reportSent(offset + tusResponse.response.sent.accepted, of: slot)
        if checksum.trailer != nil, let hash = tusResponse.contentHash, tusResponse.response.sent.accepted == count {
            try storeChecksum(hash.header, of: offset..<offset + count)
        }
        if server.dialect.ietf != nil, let result = try await handleResponse(tusResponse, from: offset, count: count, completes, checksum) {
            return result
        }
        guard tusResponse.isSuccess, let confirmed = tusResponse.offset else {
            // The header hook can renew only headers that were sent.
            let mayBeRenewed = renewalsBeforeRejection == nil && !tusResponse.endpointResponse.withheldCredentials
            let isRejected = tusResponse.status == 401 || tusResponse.status == 403
            renewalsBeforeRejection = isRejected && mayBeRenewed ? renewals : nil
            let failure = try await server.refused(tusResponse)
            if tusResponse.isFromGateway {
                try await saveGatewayResponse(UnansweredRequest(offset: offset, accepted: tusResponse.response.sent.accepted))
            }
            // The saved checkpoint may still contain this request as unanswered.
            if wasUnanswered { try await record.save() }
            // The next attempt requests the offset.
            if failure.asksToBackOff { throw failure }
            return try await recover(failure, from: offset, checksum, count: count, status: tusResponse.status)
        }
        renewalsBeforeRejection = nil
        try checkPlausible(confirmed)
        try await confirm(confirmed, expires: tusResponse.expires)
        if declaration != nil { isLengthDeclared = true }
        mismatches = 0
        contentHash = confirmed == offset + count ? hashOfAllContent(after: checksum, tusResponse, of: offset..<offset + count) : nil
        // If the server kept fewer bytes than were sent, the loop requests the offset.
        let currentOffset = confirmed == offset + count ? confirmed : try await requestOffset()
        guard currentOffset > offset || count == 0 else {
            throw TransferError(.transient, .invalidResponse, "The server \(server.origin) kept none of the bytes that were sent.")
        }
        return currentOffset
    }

    /// Sends one `PATCH`.
    ///
    /// - Parameter length: The length of the upload, if the request declares it (extension *creation-defer-length*); otherwise nil.
    private mutating func patch(
        from offset: Int64, count: Int64, _ checksum: RequestChecksum, declaring length: Int64?, _ watch: RequestWatch
    ) async throws -> TUSResponse {
        defer { expectsContinue = false }
        let (reporter, record, slot) = (reporter, record, slot)
        var headers: HTTPHeaders = [server.dialect.offsetHeader: "\(offset)", "Content-Type": server.dialect.patchContentType]
        headers[server.dialect.checksumHeader] = checksum.header
        if let ietf = server.dialect.ietf { addHeaders(of: ietf, completes: offset + count == self.length, checksum, to: &headers) }
        if let length { headers[server.dialect.lengthHeader] = "\(length)" }
        // A server may need longer to process the end of a large upload.
        let isAtEnd = self.length.map { offset + count == $0 } ?? false
        let mayTakeLong = max(count, isAtEnd ? offset + count : 0) > Self.quickContent
        // If these bytes are sent again, this report ends the wait for the previous response.
        record.reportSent(offset, of: slot)
        // A request without content reports no progress.
        if count == 0, mayTakeLong { reporter.reportWaiting() }
        // Saves the counts until the watch or this function ends.
        async let saving: Void = record.saveCounts(watch.countsToSave, from: offset, of: slot)
        let send = { @Sendable [self, headers, expectsContinue] (observe: (@Sendable (HTTPResponseHead, String) -> Void)?) in
            try await server.send(
                .patch, to: url, headers: headers,
                body: .file(file, offset: range.lowerBound + offset, length: count), expectsContinue: expectsContinue,
                trailer: checksum.trailer.map { RunningChecksum($0) }, renewalsBeforeRejection: renewalsBeforeRejection,
                observeInterim: observe, pacing: { reporter.allowance(upTo: $0) },
                progress: { accepted in
                    record.reportSent(offset + accepted, of: slot)
                    watch.update(accepted)
                    if accepted == count, mayTakeLong { reporter.reportWaiting() }
                })
        }
        let tusResponse =
            if server.dialect.ietf == nil { try await send(nil) } else {
                try await server.observingInterims(processInterims(upTo: offset + count), send: send)
            }
        watch.end()
        try await saving
        return tusResponse
    }

    /// Saves a request to which a gateway responded instead of the server. The server may have bytes of the request that its offset does not
    /// include.
    private func saveGatewayResponse(_ request: UnansweredRequest) async throws {
        guard request.accepted > 0 else { return }
        try await record.save { [slot] in $0[slot].uncountedRequest = request }
    }

    /// Saves a request that ended without a response.
    private func saveInterruption(_ interrupted: UnansweredRequest) async throws {
        server.profiles.record(interrupted, of: url)
        var observed = interrupted.accepted > 0 ? interrupted : nil
        observed?.hasObservedEnd = true
        guard await record[slot].unanswered != observed else { return }
        try await record.save { [slot, observed] in $0[slot].unanswered = observed }
    }
}
