import CurlEngine
import Foundation
import HTTPSupport
import Locking
import TransferCore
import TransportSupport

/// The request that creates an upload with the IETF protocol, either with the whole content or without content.
struct ResourceCreation {
    /// The maximum size in bytes of small content. For small content, the transport saves ``RemoteUpload/mayBeComplete`` before the request; for
    /// larger content, only before the last byte (``CompletionGate``).
    private static let smallSize: Int64 = 1 << 20

    /// The result of a creation for which ``send(withContent:)`` throws no error.
    enum Result {
        /// The server has processed the whole file.
        case complete(TUSResponse)
        /// The upload exists. The offset is nil if it must be requested.
        case open(url: String, offset: Int64?)
        case rejected(TUSResponse)
    }

    let server: TUSServer
    let file: FileReader
    let record: TUSUploadRecord
    let reporter: AttemptReporter
    let url: String
    /// The headers about the file.
    let headers: HTTPHeaders
    /// The size of the file; nil for a stream of unknown length.
    let size: Int64?

    /// The interim responses to the request.
    private let interims = Locked(InterimWatch.Report())

    init(
        server: TUSServer, file: FileReader, record: TUSUploadRecord, reporter: AttemptReporter, url: String, headers: HTTPHeaders,
        size: Int64?
    ) {
        self.server = server
        self.file = file
        self.record = record
        self.reporter = reporter
        self.url = url
        self.headers = headers
        self.size = size
    }

    /// The limits in interim responses.
    var limits: UploadLimits? { interims.withLock { $0.limits } }

    /// Sends the request.
    ///
    /// - Parameter withContent: Whether the request contains the whole content.
    /// - Throws: A ``TransferError``. Its code is ``TransferError/Code/outcomeUnknown`` if the server may have processed the file, and has announced
    ///   no upload whose state can be requested.
    func send(withContent: Bool) async throws -> Result {
        guard let terms = server.dialect.ietf else { throw CancellationError() }
        var headers = headers
        headers[terms.completenessHeader] = terms.completeness(withContent)
        if let size { headers[server.dialect.lengthHeader] = "\(size)" }
        let count = withContent ? size ?? 0 : 0
        let isSmall = count <= Self.smallSize
        // Saved before the request. After a crash, the checkpoint shows that an upload may exist.
        try await record.save { [server] in
            $0.whole.dialect = server.dialect.storedName
            $0.whole.mayBeComplete = withContent && isSmall ? true : nil
        }
        let tusResponse: TUSResponse
        do {
            tusResponse = try await request(headers, withContent: withContent, count: count, isOpen: isSmall)
        } catch let error as CurlEngineError {
            return try await handleInterruption(error, withContent: withContent, count: count)
        }
        record.reportSent(tusResponse.response.sent.accepted, of: .whole)
        await record.removeUnanswered(of: .whole)
        return try await handleResponse(tusResponse, withContent: withContent, count: count)
    }

    private func request(_ headers: HTTPHeaders, withContent: Bool, count: Int64, isOpen: Bool) async throws -> TUSResponse {
        let gate = CompletionGate(size: count, isOpen: !withContent || isOpen)
        let watch = RequestWatch()
        record.reportSent(0, of: .whole)
        // These two tasks end with the request.
        async let saving: Void = record.saveCounts(watch.countsToSave, from: 0, of: .whole)
        async let opening: Void = gate.open { try await record.save { $0.whole.mayBeComplete = true } }
        defer {
            watch.end()
            gate.end()
        }
        let body: HTTPBody = count > 0 ? .file(file, offset: 0, length: count) : .bytes([])
        let tusResponse: TUSResponse
        do {
            tusResponse = try await server.observingInterims(process) { [server, url, record, reporter] observe in
                try await server.send(
                    .create, to: url, headers: headers, body: body, expectsContinue: count > TUSServer.maximumSizeWithoutExpect,
                    observeInterim: observe, pacing: { gate.allowance(upTo: $0, by: reporter.allowance) },
                    progress: { accepted in
                        record.reportSent(accepted, of: .whole)
                        watch.update(accepted)
                        if accepted == count { reporter.reportWaiting() }
                    })
            }
        } catch let error as CancellationError {
            gate.end()
            try? await opening
            // If the gate withheld bytes, the server can't have the whole content, so the next attempt may create another upload.
            if !gate.mayHaveSentAll { await Task { [record] in try? await record.save { $0.whole.mayBeComplete = nil } }.value }
            throw error
        }
        watch.end()
        gate.end()
        try await saving
        try await opening
        return tusResponse
    }

    /// Saves the upload's URL and confirmed bytes as soon as the server reports them.
    ///
    /// - Throws: A ``TransferError`` if the endpoint does not trust the URL, if the URL changes, or if the server's limits exclude the file.
    private func process(_ report: InterimWatch.Report) async throws {
        interims.withLock { $0 = report }
        if let other = report.otherVersion {
            var server = server
            server.dialect = other
            server.confirmDialect()
            return
        }
        server.confirmDialect()
        if let location = report.location, await record[.whole].url == nil {
            try server.checkUploadURL(location)
            try await record.confirm(0, of: .whole, url: location.absoluteString)
        }
        if report.changesLocation { throw changedLocation }
        try server.checkLimits(report.limits, of: size)
        guard let offset = report.offset, await record[.whole].url != nil, offset > (await record[.whole].confirmed ?? 0),
            offset <= size ?? .max
        else { return }
        try await record.confirm(offset, of: .whole)
    }

    /// The error if the responses to one request contain different URLs, although the URLs must be the same (draft-ietf-httpbis-resumable-upload,
    /// "Upload Creation").
    private var changedLocation: TransferError {
        TransferError(
            .permanent, .invalidResponse,
            "The server \(server.origin) announced two uploads for one request, so it is unknown which of them receives the file. Report this to the "
                + "server's operator.")
    }

    private func handleInterruption(_ error: CurlEngineError, withContent: Bool, count: Int64) async throws -> Result {
        record.reportSent(error.sent.accepted, of: .whole)
        let failure = server.client.transferError(error, at: url, isEndpoint: true)
        if error.isHTTP2Failure { server.profiles.learn(of: server.address) { $0.breaksInterimResponses = true } }
        let mayBeComplete = withContent && !error.cannotHaveArrived && error.sent.read >= count
        if mayBeComplete, await record[.whole].url == nil {
            try await record.save { $0 = TUSCheckpoint() }
            throw TransferError(
                .permanent, .outcomeUnknown,
                "The connection to \(server.origin) broke after all content was sent. The server may have stored the file, and announced no upload "
                    + "that can be checked. Look for the file there before you retry it, because a retry may store it a second time.",
                cause: failure.cause)
        }
        let otherVersion = interims.withLock { $0.otherVersion }
        try await record.save { checkpoint in
            checkpoint.whole.mayBeComplete = mayBeComplete ? true : nil
            if let otherVersion, checkpoint.whole.url == nil { checkpoint.whole.dialect = otherVersion.storedName }
            if withContent, error.sent.accepted > 0 {
                checkpoint.whole.unanswered = UnansweredRequest(offset: 0, accepted: error.sent.accepted, hasObservedEnd: true)
            }
        }
        // A proxy may have forwarded the interim response as if it were the final one.
        if !withContent, failure.failureClass == .transient, let url = await record[.whole].url { return .open(url: url, offset: nil) }
        throw failure
    }

    private func handleResponse(_ tusResponse: TUSResponse, withContent: Bool, count: Int64) async throws -> Result {
        let location = tusResponse.isComplete == true ? nil : tusResponse.location
        guard tusResponse.isSuccess else { return try await handleRejection(tusResponse, withContent: withContent) }
        let isAnnounced = await record[.whole].url != nil
        if tusResponse.isUnrelatedPage, !isAnnounced {
            try await record.save { $0 = TUSCheckpoint() }
            throw tusResponse.failure()
        }
        let usesOtherVersion = interims.withLock { $0.otherVersion != nil }
        if isAnnounced || tusResponse.isFromTUSServer && !usesOtherVersion { server.confirmDialect() }
        let hasInterims = interims.withLock { $0.location != nil || $0.offset != nil || $0.limits != nil || $0.otherVersion != nil }
        if !withContent { server.profiles.learn(of: server.address) { $0.sendsNoInterimResponses = !hasInterims } }
        if withContent, isComplete(tusResponse, count: count) {
            try tusResponse.checkSent(count, .permanent)
            await record.complete(count, of: .whole, url: nil)
            return .complete(tusResponse)
        }
        let known = await record[.whole].url
        if let location {
            if let announced = known.flatMap({ URL(string: $0) }), !location.isSameResource(as: announced) { throw changedLocation }
            if !isAnnounced { try server.checkUploadURL(location) }
        }
        guard let url = known ?? location?.absoluteString else {
            try await record.save { $0 = TUSCheckpoint() }
            throw tusResponse.failure()
        }
        let offset = tusResponse.offset ?? (withContent ? nil : 0)
        await record.setMayBeComplete(nil, of: .whole)
        let sent = min(count, tusResponse.response.sent.read)
        if let offset, offset > sent { throw server.implausibleOffset(offset, sent: sent) }
        try await record.confirm(max(offset ?? 0, await record[.whole].confirmed ?? 0), of: .whole, expires: tusResponse.expires, url: url)
        return .open(url: url, offset: offset)
    }

    /// Returns whether the resource to which the content was sent has processed the content.
    private func isComplete(_ tusResponse: TUSResponse, count: Int64) -> Bool {
        if let isComplete = tusResponse.isComplete { return isComplete }
        // The upload resource may have kept less than was sent.
        return tusResponse.offset.map { $0 >= count } ?? true
    }

    private func handleRejection(_ tusResponse: TUSResponse, withContent: Bool) async throws -> Result {
        if withContent, tusResponse.isComplete == true {
            try await record.save { $0 = TUSCheckpoint() }
            throw tusResponse.rejectionOfWholeFile
        }
        let isLost = tusResponse.isFromGateway && withContent && tusResponse.response.sent.read >= size ?? 0
        if isLost, await record[.whole].url == nil {
            try await record.save { $0 = TUSCheckpoint() }
            throw server.outcomeUnknown(cause: "\(tusResponse.endpointResponse.method) returned \(tusResponse.status)")
        }
        // A gateway, or a server of an old version, can respond with an error although the upload is complete.
        let isUnclear = tusResponse.status >= 500 && withContent
        try await record.save { $0.whole.mayBeComplete = isUnclear && $0.whole.url != nil ? true : nil }
        return .rejected(tusResponse)
    }
}
