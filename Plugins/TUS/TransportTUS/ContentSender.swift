import CurlEngine
import HTTPClient
import TransferCore
import TransportSupport

/// Brings the bytes of one upload to the server, request by request, from wherever the server stands.
struct ContentSender {
    /// How often in one attempt the server may say 409 and name another offset, before the queue is to wait.
    private static let maximumConflicts = 3
    /// How many bytes a server has to take without working longer than the stall timeout, as it has to answer any other request.
    private static let quickContent: Int64 = 1 << 20

    let server: TUSServer
    let file: FileReader
    let record: UploadRecord
    let slot: UploadRecord.Slot
    /// Where in the file the upload's bytes are; of a file that still grows, without an end.
    let range: Range<Int64>
    var chunks: ChunkPlan
    var check: ContentCheck
    let threads: WorkerThreads
    let reporter: AttemptReporter
    let url: String

    /// The checksum of all that was sent, as long as that is everything from the upload's first byte on.
    private(set) var contentHash: ContentHash?

    private var mismatches = 0
    /// The last checksum that was computed, and of which bytes.
    var lastChecksum: (range: Range<Int64>, header: String)?
    private var conflicts = 0
    /// The position up to which the server can have bytes of ours.
    private var reach: Int64 = 0
    /// The highest position that was ever confirmed: of a source that grows, what is before it can't be read any more.
    private var released: Int64 = 0
    /// Whether the next request asks before it sends its content (RFC 9110, section 10.1.1), as a server that refuses it may close without
    /// reading it, and what it answered is lost.
    private var asksFirst = false
    /// Set while a request is to be sent once more that was refused for its credentials: how often those had been renewed when it was sent.
    private var rejectedSince: Int?

    init(
        server: TUSServer, file: FileReader, record: UploadRecord, slot: UploadRecord.Slot, range: Range<Int64>, chunks: ChunkPlan,
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

    /// Whether the server was told how long the upload is.
    var isLengthDeclared = true
    /// The most bytes that the server takes of a stream; nil if it does not say.
    var maximumSize: Int64?
    private var window = StreamWindow()
    /// Whether the length goes along with the next request: the server wants it before the last one, or may have missed it.
    private var tellsLengthAtOnce = false

    private var growth: SourceGrowth? { file.source.growth }

    /// How many bytes the upload has; nil while nobody knows.
    var length: Int64? {
        guard let growth else { return range.upperBound - range.lowerBound }
        return if case .complete(let size) = growth.extent { size } else { growth.length }
    }

    /// Up to where there are bytes to send after an offset, once there are; nil when all was sent, and the server knows the length.
    ///
    /// - Throws: What the app's producer failed with; `CancellationError`.
    private mutating func end(after offset: Int64) async throws -> Int64? {
        guard let growth else { return length.flatMap { offset < $0 ? $0 : nil } }
        try await growth.waitUntilReadable(upTo: offset + chunks.multiple)
        switch growth.extent {
        case .growing(let end):
            try server.checkSize(end, atMost: maximumSize)
            let part = window.part(from: offset, to: end)
            return offset + max(chunks.multiple, part - part % chunks.multiple)
        case .complete(let size):
            try server.checkSize(size, atMost: maximumSize)
            return offset < size || !isLengthDeclared ? size : nil
        case .failed(let error): throw error
        }
    }

    /// What the server can have of ours at most, whatever became of earlier attempts.
    private var available: Int64 {
        switch growth?.extent {
        case nil: range.upperBound - range.lowerBound
        case .growing(let end), .complete(let end): min(length ?? .max, end)
        // How far the producer came is not told. Nothing more is sent; the failure is the attempt's.
        case .failed: length ?? .max
        }
    }

    /// Asks where the server stands, unless that is known by now, and goes on from there.
    mutating func resume(from known: TUSServer.Standing? = nil) async throws {
        // What an earlier attempt sent may still be on its way through the server when this one begins.
        reach = available
        asksFirst = true
        released = await record[slot].confirmed ?? 0
        let (offset, answer) = if let known { known } else { try await standing() }
        if growth != nil {
            isLengthDeclared = answer.length != nil
            try checkPlausible(offset)
        }
        if offset < length ?? .max { try await noteUnverified(offset - (record[slot].confirmed ?? 0)) }
        let expires = answer.expires
        if offset < length ?? .max, let time = await expiry(expires), time <= answer.serverTime {
            throw TransferError(.resumeLost, .uploadGone, "The server \(server.origin) has let the upload expire.")
        }
        await record.settleDoubt(server.memory.requestBeforeOutage(of: url), at: offset, of: slot)
        let cut = await record.takeUnanswered(of: slot)
        server.memory.forgetCut(of: url)
        chunks.learn(from: cut, at: offset)
        try await confirm(offset, expires: expires)
        try await send(from: offset)
    }

    private func expiry(_ told: Int?) async -> Int? {
        if let told { return told }
        return await record[slot].expires
    }

    /// Sends all that remains.
    ///
    /// - Parameter offset: Where the server stands, by its own word.
    mutating func send(from offset: Int64) async throws {
        reach = max(reach, offset)
        if offset < length ?? .max { try await settleCheck(at: offset) }
        if offset == 0, case .eachRequest(let algorithm) = check { contentHash = ContentHash(algorithm) }
        var offset = offset
        while let end = try await end(after: offset) { offset = try await sendNext(from: offset, to: end) }
    }

    /// Keeps what the server says that it has.
    ///
    /// - Throws: Also a ``TransferError`` of the class ``FailureClass/sourceLost`` if it lost what a stream does not give a second time.
    private mutating func confirm(_ offset: Int64, expires: Int?) async throws {
        guard growth == nil || offset >= released else {
            throw TransferError(
                .sourceLost, .producerGone,
                "The server \(server.origin) went back to \(offset) of the \(released) bytes of a stream that it had; they are not kept. "
                    + "Enqueue it anew.")
        }
        released = max(released, offset)
        try await record.confirm(offset, of: slot, expires: expires)
        growth?.confirmed(before: offset)
    }

    /// Sends all that remains, or as much of it as one request may bring.
    ///
    /// - Returns: Where the server stands, by its own word.
    private mutating func sendNext(from offset: Int64, to end: Int64) async throws -> Int64 {
        let count = chunks.next(remaining: end - offset)
        let declaration = isLengthDeclared ? nil : length.flatMap { tellsLengthAtOnce || offset + count == $0 ? $0 : nil }
        if declaration != nil { tellsLengthAtOnce = true }
        let renewals = server.renewals
        let seal = try await seal(offset..<offset + count)
        let asked = asksFirst
        let watch = RequestWatch()
        let answer: TUSAnswer
        do {
            answer = try await patch(from: offset, count: count, seal, declaring: declaration, watch)
        } catch let error as CurlEngineError {
            reach = max(reach, offset + error.sent.limit)
            record.noteSent(offset + error.sent.taken, of: slot)
            try await noteCut(UnansweredRequest(offset: offset, taken: error.sent.taken))
            let failure = error.transferError(at: server.origin(of: url), by: server.settings.connection, isEndpoint: false)
            if error.neverArrived { throw failure }
            if error.wasServerGone { server.memory.noteOutage(of: url) }
            let isLost = error.kind == .connectionLost || error.kind == .outcomeUnknown
            let mayBeRefused = !asked && isLost && !error.wasServerGone && error.sent.taken < count
            return try await settle(failure, from: offset, count: count, mayBeRefused: mayBeRefused)
        } catch let error as CancellationError {
            let request = UnansweredRequest(offset: offset, taken: watch.taken)
            server.memory.note(request, of: url)
            await Task { [record, slot] in try? await record.noteAbandoned(request, of: slot) }.value
            throw error
        }
        let wasMarked = await record.takeUnanswered(of: slot) != nil
        reach = max(reach, offset + answer.response.sent.limit)
        record.noteSent(offset + answer.response.sent.taken, of: slot)
        if seal.trailer != nil, let hash = answer.contentHash, answer.response.sent.taken == count {
            try noteChecksum(hash.header, of: offset..<offset + count)
        }
        guard answer.isSuccess, let confirmed = answer.offset else {
            // The hook is asked anew only where its headers may go.
            let mayBeRenewed = rejectedSince == nil && !answer.withheldCredentials
            if answer.status == 401 || answer.status == 403, mayBeRenewed { rejectedSince = renewals } else { rejectedSince = nil }
            let failure = try await server.refused(answer)
            if answer.isFromGateway { try await noteGateway(UnansweredRequest(offset: offset, taken: answer.response.sent.taken)) }
            // This request is no longer one without an answer, whatever becomes of the next one.
            if wasMarked { try await record.save() }
            // Where the server stands is for the next attempt to ask.
            if failure.wantsPeace { throw failure }
            return try await settle(failure, from: offset, count: count, status: answer.status)
        }
        rejectedSince = nil
        try checkPlausible(confirmed)
        try await confirm(confirmed, expires: answer.expires)
        if declaration != nil { isLengthDeclared = true }
        mismatches = 0
        contentHash = confirmed == offset + count ? wholeHash(after: seal, answer, of: offset..<offset + count) : nil
        // It may take less than was sent. Where it stands now is asked, as after all that did not go as planned.
        let now = confirmed == offset + count ? confirmed : try await askOffset()
        guard now > offset || count == 0 else {
            throw TransferError(.transient, .badAnswer, "The server \(server.origin) kept none of the bytes that were sent.")
        }
        return now
    }

    /// - Parameter length: The length of the upload, if the server is to be told now (extension *creation-defer-length*).
    private mutating func patch(
        from offset: Int64, count: Int64, _ seal: Seal, declaring length: Int64?, _ watch: RequestWatch
    ) async throws -> TUSAnswer {
        defer { asksFirst = false }
        let (reporter, record, slot) = (reporter, record, slot)
        var headers: HTTPHeaders = [server.dialect.offsetHeader: "\(offset)", "Content-Type": server.dialect.patchContentType]
        headers[server.dialect.checksumHeader] = seal.header
        if let length { headers[server.dialect.lengthHeader] = "\(length)" }
        // A server may work longer at the end of much content than of little.
        let isAtEnd = self.length.map { offset + count == $0 } ?? false
        let mayTakeLong = max(count, isAtEnd ? offset + count : 0) > Self.quickContent
        // Also where the network takes none of it: that this was sent before does not make it the server's turn.
        record.noteSent(offset, of: slot)
        // Ends with the watch, or with this function.
        async let kept: Void = record.keep(watch.marks, from: offset, of: slot)
        let answer = try await server.send(
            .patch, to: url, headers: headers,
            body: .file(file, offset: range.lowerBound + offset, length: count), expectsContinue: asksFirst,
            trailer: seal.trailer.map { ContentHash($0) }, rejectedSince: rejectedSince, pacing: { reporter.allowance(upTo: $0) },
            progress: { taken in
                record.noteSent(offset + taken, of: slot)
                watch.note(taken)
                if taken == count, mayTakeLong { reporter.reportWaiting() }
            })
        watch.end()
        try await kept
        return answer
    }

    /// Keeps a request that a gateway answered, because the server behind it did not: the server may have bytes of it that it does not count.
    private func noteGateway(_ request: UnansweredRequest) async throws {
        guard request.taken > 0 else { return }
        try await record.save { [slot] in $0[slot].doubtful = request }
    }

    private func noteCut(_ cut: UnansweredRequest) async throws {
        server.memory.note(cut, of: url)
        var telling = cut.taken > ChunkPlan.buffered ? cut : nil
        telling?.isWitnessed = true
        guard await record[slot].unanswered != telling else { return }
        try await record.save { [slot] in $0[slot].unanswered = telling }
    }

    /// After a `PATCH` that failed: asks the server what it has, as only it knows. Never sends the same offset again unasked.
    ///
    /// - Parameter mayBeRefused: Whether the server closed on content that it was sent unasked.
    /// - Returns: Where to go on, if that makes sense at once.
    /// - Throws: The failure.
    private mutating func settle(
        _ failure: TransferError, from offset: Int64, count: Int64, status: Int? = nil, mayBeRefused: Bool = false
    ) async throws -> Int64 {
        let now: Int64
        do {
            now = try await askOffset()
        } catch let error as TransferError where error.failureClass != .resumeLost && error.failureClass != .sourceLost {
            // It does not answer this either; the failure that came first says more, but for how long the server wants to be left alone. What that
            // was is final only if nothing more could have been done about it.
            let mayPass = failure.failureClass == .permanent && ![.permanent, .unsupported].contains(error.failureClass)
            throw TransferError(
                mayPass ? error.failureClass : failure.failureClass, failure.code, failure.message, cause: failure.cause,
                retryAfter: failure.retryAfter ?? error.retryAfter)
        }
        // What is known of the content ends where this request began.
        if now != offset { contentHash = nil }
        // The checksum of a whole request went before it, unless it comes behind.
        if now < offset + count || check.sendsTrailers { try await noteUnverified(now - offset) }
        if now == length, isLengthDeclared, status != server.dialect.checksumMismatch { return now }
        if mayBeRefused, now == offset {
            asksFirst = true
            return now
        }
        guard let status, try await canGoOn(after: status, failure, from: offset, count: count, at: now) else { throw failure }
        return now
    }

    /// Whether another request makes sense at once after one that was refused.
    private mutating func canGoOn(
        after status: Int, _ failure: TransferError, from offset: Int64, count: Int64, at now: Int64
    ) async throws -> Bool {
        switch status {
        case 400 where !isLengthDeclared && !tellsLengthAtOnce:
            // It may want to know the length before it takes content.
            tellsLengthAtOnce = true
            try await growth?.waitUntilComplete()
            return true
        case 400:
            try await noteRefusal(at: now, failure)
            return false
        case 401, 403:
            return server.hasHeaderHook && rejectedSince != nil
        case 405, 501:
            return server.beginOverridingMethod()
        case 409:
            guard now != offset, conflicts < Self.maximumConflicts else { return false }
            conflicts += 1
            return true
        case server.dialect.checksumMismatch:
            mismatches += 1
            // Once may be the way's fault. Twice, it may be that the file is not what it was.
            if mismatches > 1 { try await file.verifyUnchanged() }
            return now == offset && mismatches < Self.maximumMismatches
        case 413:
            return chunks.shrink(below: count)
        default:
            return false
        }
    }

    /// A 400 may be a proxy's mood once; a second one at the same offset is an answer.
    private func noteRefusal(at offset: Int64, _ failure: TransferError) async throws {
        if await record[slot].refusedOffset == offset { throw failure }
        try await record.save { [slot] in $0[slot].refusedOffset = offset }
        throw TransferError(.transient, failure.code, failure.message, cause: failure.cause)
    }

    /// Asks where the server stands. If it is gone since the last request was cut, that is kept.
    private func standing() async throws -> TUSServer.Standing {
        // The answer to this question is quick, whatever was awaited before.
        reporter.reportActivity()
        do {
            let standing = try await server.offset(of: url, length: length)
            reporter.reportAnswer()
            return standing
        } catch let error as TransferError {
            if let request = server.memory.requestBeforeOutage(of: url), await record[slot].doubtful != request {
                try await record.save { [slot] in $0[slot].doubtful = request }
            }
            throw error
        }
    }

    private mutating func askOffset() async throws -> Int64 {
        let (offset, answer) = try await standing()
        try checkPlausible(offset)
        if growth != nil, answer.length != nil { isLengthDeclared = true }
        try await confirm(offset, expires: answer.expires)
        return offset
    }

    /// Refuses bytes that the server can't have from us.
    private func checkPlausible(_ offset: Int64) throws(TransferError) {
        guard offset <= min(reach, RemoteUpload.sizes.upperBound) else {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(server.origin) claims to have \(offset) bytes, more than the \(reach) that were sent.")
        }
    }
}
