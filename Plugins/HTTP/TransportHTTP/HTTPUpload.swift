import CurlEngine
import Foundation
import HTTPSupport
import Locking
import TransferCore
import TransportSupport

/// One attempt to upload one file or one form, from its first byte.
struct HTTPUpload {
    /// The maximum size in bytes of a body that the first attempt sends without `Expect: 100-continue`. With `Expect`, the rejection of a
    /// larger body costs one round trip instead of the whole body.
    private static let maximumSizeWithoutExpect: Int64 = 256 * 1024
    /// The maximum size in bytes of content that any server should process within the stall timeout.
    private static let quickContent: Int64 = 1 << 20
    /// The number of times that a server may report success too early, that is, before it can have received the whole file.
    private static let toleratedEarlySuccesses = 2

    let attempt: FileAttempt
    let server: HTTPEndpointClient
    let disks: DiskThreads
    let reporter: AttemptReporter
    let folders: FolderCreation

    init(
        _ attempt: FileAttempt, to server: HTTPEndpointClient, on disks: DiskThreads, creating folders: FolderCreation,
        reporting reporter: AttemptReporter
    ) {
        self.attempt = attempt
        self.server = server
        self.disks = disks
        self.folders = folders
        self.reporter = reporter
    }

    var isForm: Bool { server.upload == .form }
    /// Whether the server may create a record for each request, for example a row in a database. If so, a repeated request may create a
    /// second record, unlike a `PUT`.
    var leavesRecord: Bool { server.upload != .put }
    /// The method of a request whose content is the file.
    var method: String { leavesRecord ? "POST" : "PUT" }
    var names: TransferNames { TransferNames(attempt) }

    func mediaType(ofFile name: [UInt8]) -> String {
        server.plan.contentType ?? server.options.contentType ?? MediaType.ofFile(named: name)
    }

    /// Sends a file by `PUT` or `POST`, or in a form with the additional files of the settings. The progress does not include these
    /// additional files.
    ///
    /// - Throws: A ``TransferError`` or `CancellationError`.
    func run(_ source: UploadSource) async throws -> TransferReceipt {
        // Some form handlers silently drop a part whose name they can't decode.
        guard !isForm || String(validating: attempt.remotePath.bytes, as: UTF8.self) != nil else {
            throw TransferError(
                .permanent, .unsafeName,
                "The remote name \"\(attempt.remotePath)\" is not UTF-8, which forms require; choose another one.")
        }
        if server.upload == .put, server.givenURL == nil, server.address.mergesFolders, attempt.remotePath.bytes.contains(UInt8(ascii: "/"))
        {
            throw TransferError(
                .unsupported, .unsupported,
                "The address at \(server.address.origin) has {name} but not {path}, so files with the same name in different folders would "
                    + "replace each other. Write {path} instead of {name} in the address, or choose a remote name without folders.")
        }
        if source.growth != nil, let sent = attempt.checkpoint?.confirmed, sent > 0 {
            throw TransferError(
                .sourceLost, .producerGone,
                "The stream was interrupted after \(sent) bytes. A stream can't resume over plain HTTP. Enqueue it again.")
        }
        let file = try await FileReader.open(source, on: disks.threads(for: source))
        let folder = try await createFolders()
        if let growth = source.growth, canSendLive(growth), let receipt = try await sendLive(file, growth, folder) { return receipt }
        let size = try await completeSize(source)
        if isForm {
            let additionalFiles = try await FormFiles(server.options, for: source, names).open(on: disks)
            let form = form(file, size, with: additionalFiles)
            let endpointResponse = try await send(form, from: [file] + additionalFiles.map(\.reader))
            return receipt(endpointResponse, size, source.growth)
        }
        let endpointResponse = try await sendContent(of: file, size, folder)
        var receipt = try await verifiedReceipt(endpointResponse, file, size, canReadAgain: true)
        if source.growth != nil, server.client.quirks.requiresLength(server.origin) {
            receipt.warnings.append(
                "The server \(server.origin) requires the length of a stream, so the stream was sent after it had ended.")
        }
        return receipt
    }

    /// Verifies a file that was sent by `PUT`, reports that the server has the whole file, and returns its receipt. A file that was sent by
    /// `POST` is not verified.
    ///
    /// - Parameter canReadAgain: Whether the source still has all bytes.
    func verifiedReceipt(
        _ endpointResponse: EndpointResponse, _ file: FileReader, _ size: Int64, canReadAgain: Bool
    ) async throws -> TransferReceipt {
        // A checksum in the response to a POST can belong to the created record instead of the content, and a POST must not be sent again.
        guard !leavesRecord else { return receipt(endpointResponse, size, file.source.growth) }
        let (checksum, warnings) = try await UploadVerification(
            server: server, url: url, file: file, size: size, verification: attempt.options.verification, canReadAgain: canReadAgain,
            threads: disks.threads(for: file.source), reporter: reporter
        ).verify(endpointResponse)
        var receipt = receipt(endpointResponse, size, file.source.growth)
        (receipt.checksum, receipt.warnings) = (checksum?.text, warnings)
        return receipt
    }

    /// Reports that the server has the whole file or form, and returns its receipt.
    func receipt(_ endpointResponse: EndpointResponse, _ size: Int64, _ growth: SourceGrowth? = nil) -> TransferReceipt {
        growth?.confirmed(before: size)
        reporter.report(sent: size, confirmed: size)
        return TransferReceipt(
            bytes: size, remoteURL: uploadedURL(endpointResponse),
            serverResponse: endpointResponse.forReceipt(upTo: server.options.responseLimit))
    }

    /// Whether the upload ends with a comparison of the content. The source must then keep the content.
    var comparesContent: Bool { attempt.options.verification == .checksum }

    /// Counts a success that the server reported too early, and returns the class of the error. A `PUT` can be repeated (RFC 9110, section
    /// 9.2.2), even at another endpoint. A `POST` must not be sent again, because the server may already have created a record.
    func recordEarlySuccess() -> FailureClass {
        if leavesRecord { return .permanent }
        let successes = server.client.quirks.recordEarlySuccess(attempt.transferID)
        return successes > Self.toleratedEarlySuccesses ? .unsupported : .protocolViolation
    }

    /// Waits until the source is complete, and returns its size, which the request must contain before the first byte of the file.
    private func completeSize(_ source: UploadSource) async throws -> Int64 {
        guard let growth = source.growth else { return source.size }
        try await growth.waitUntilComplete()
        switch growth.extent {
        case .complete(let size): return size
        case .failed(let error): throw error
        case .growing: throw CancellationError()
        }
    }

    var url: String { server.givenURL ?? server.address.upload(names, by: server.upload) }
    var fileHeaders: HTTPHeaders {
        var headers = UploadVerification.requestHeaders(attempt.options.verification)
        headers["Content-Type"] = mediaType(ofFile: attempt.remotePath.lastComponent)
        for (name, value) in attempt.options.metadata.sorted(by: { $0.key < $1.key }) {
            headers.append((server.options.metadataPrefix ?? "") + name, value)
        }
        return headers
    }

    /// Sends a form in a `POST`, and returns the response once the server has the whole form.
    ///
    /// - Parameter files: The files from which the form is read.
    /// - Throws: A ``TransferError`` if the server does not have the whole form, or if a file has changed; or `CancellationError`.
    func send(_ form: FormBody, from files: [FileReader]) async throws -> EndpointResponse {
        let bodyProgress = BodyProgress()
        let sent = try await sendReportingRecord(form.body.length ?? form.size, bodyProgress) { gate in
            try await send(
                "POST", ["Content-Type": form.contentType], form.body, form.size, bodyProgress, gate, contentBytes: form.contentBytes)
        }
        return try await complete(sent, from: files) { $0.uploadFailure(isGivenURL: server.givenURL != nil) }
    }

    /// Sends a file as the content of a request, and returns the response once the server has the whole file.
    ///
    /// - Throws: A ``TransferError`` if the server does not have the whole file, or if the file has changed; or `CancellationError`.
    private func sendContent(
        of file: FileReader, _ size: Int64, _ folder: FolderCreation.Outcome
    ) async throws -> EndpointResponse {
        // The first request, and its repetition after the folders were created again, share one progress, so that repeated bytes count as
        // activity.
        let bodyProgress = BodyProgress()
        func send() async throws -> SentBody {
            try await sendReportingRecord(size, bodyProgress) { gate in
                try await self.send(method, fileHeaders, .file(file, offset: 0, length: size), size, bodyProgress, gate) { $0 }
            }
        }
        var (sent, folder) = (try await send(), folder)
        if !isSuccess(sent.endpointResponse), let state = try await createFoldersAgain(after: sent.endpointResponse) {
            if canStoreNow(sent.endpointResponse, in: state) { sent = try await send() }
            folder = state
        }
        return try await complete(sent, from: [file]) { [folder] in failure($0, folder) }
    }

    /// A response, and the length of the request's body in bytes.
    typealias SentBody = (endpointResponse: EndpointResponse, length: Int64)

    /// The progress of all requests with the same body: the furthest position, in bytes of content, that any of them reached, and the number of
    /// bytes of the body that the connection of the last request accepted.
    final class BodyProgress: Sendable {
        /// `isWhole` is true once a connection has accepted the whole body.
        let state = Locked((furthest: Int64(0), accepted: Int64(0), isWhole: false))
    }

    /// Returns the response if the server has the whole body, and the files in the body have not changed.
    private func complete(
        _ sent: SentBody, from files: [FileReader], _ failure: (EndpointResponse) -> TransferError
    ) async throws -> EndpointResponse {
        guard isSuccess(sent.endpointResponse) else { throw failure(sent.endpointResponse) }
        // If the server responded before all bytes were sent, it does not have the whole file.
        let accepted = sent.endpointResponse.response.sent.accepted
        guard accepted == sent.length else {
            throw sent.endpointResponse.earlySuccess(after: accepted, of: sent.length, recordEarlySuccess())
        }
        for file in files { try await file.verifyUnchanged() }
        return sent.endpointResponse
    }

    /// Sends the whole body in one request.
    ///
    /// - Parameters:
    ///   - size: The number of bytes of the body that the progress includes.
    ///   - bodyProgress: The progress of all requests with the same body.
    ///   - gate: Holds back the last bytes of the body; nil to hold back none.
    ///   - contentBytes: Converts a number of bytes from the start of the body to the number of those bytes that the progress includes.
    private func send(
        _ method: String, _ headers: HTTPHeaders, _ body: HTTPBody, _ size: Int64, _ bodyProgress: BodyProgress, _ gate: RecordGate?,
        contentBytes: @escaping @Sendable (Int64) -> Int64
    ) async throws -> SentBody {
        let reporter = reporter
        let length = body.length ?? size
        if length == 0 { bodyProgress.state.withLock { $0.isWhole = true } }
        let endpointResponse = try await server.send(
            method, to: url, headers: headers, body: body,
            // A server that rejects the content may close the connection before its response is read, so later attempts always send Expect.
            expectsContinue: length > (attempt.number > 1 ? 0 : Self.maximumSizeWithoutExpect),
            pacing: { gate?.allowance(upTo: $0, reporter.allowance) ?? reporter.allowance(upTo: $0) },
            progress: { accepted in
                let content = min(contentBytes(accepted), size)
                let (furthest, isRepeated) = bodyProgress.state.withLock { position in
                    // After a redirect or a new request, the body is sent again from its first byte.
                    let isRepeated = position.accepted != accepted && content <= position.furthest && accepted < length
                    position = (max(position.furthest, content), accepted, position.isWhole || accepted == length)
                    return (position.furthest, isRepeated)
                }
                // Repeated bytes, and bytes that the progress does not include, are activity, but not progress.
                if isRepeated { reporter.reportActivity() }
                reporter.report(sent: furthest, confirmed: 0)
                if accepted == length, length > Self.quickContent { reporter.reportWaiting() }
            })
        return (endpointResponse, length)
    }

    /// Returns whether a response means that the file has arrived, provided that the whole request was sent.
    func isSuccess(_ endpointResponse: EndpointResponse) -> Bool {
        (200..<300).contains(endpointResponse.status) || (leavesRecord && endpointResponse.status == 303)
            || server.options.acceptedStatuses.contains(endpointResponse.status)
    }

    /// The URL of the uploaded file, without its query: the URL of the `PUT`, or the `Location` in the response to a `POST`. Nil if the URL
    /// is unknown or repeats a secret.
    private func uploadedURL(_ endpointResponse: EndpointResponse) -> String? {
        endpointResponse.shown(leavesRecord ? endpointResponse.response.location?.absoluteString : endpointResponse.response.effectiveURL)
    }
}
