import CurlEngine
import Foundation
import HTTPSupport
import Locking
import TransferCore
import TransportSupport

/// One attempt to upload one file, from its first byte.
struct HTTPUpload {
    /// The maximum size in bytes of a body that the first attempt sends without `Expect: 100-continue`. With `Expect`, the rejection of a
    /// larger body costs one round trip instead of the whole body.
    private static let maximumSizeWithoutExpect: Int64 = 256 * 1024
    /// The maximum size in bytes of content that any server should process within the stall timeout.
    private static let quickContent: Int64 = 1 << 20
    /// The number of times that a server may report success too early, that is, before it can have received the whole file.
    private static let toleratedEarlySuccesses = 2

    private let attempt: FileAttempt
    let source: UploadSource
    let server: HTTPServer
    let disks: DiskThreads
    let reporter: AttemptReporter

    /// - Throws: A ``TransferError`` if the file is sent in a form, and its remote name is not UTF-8.
    init(
        _ attempt: FileAttempt, _ source: UploadSource, to server: HTTPServer, on disks: DiskThreads,
        reporting reporter: AttemptReporter
    ) throws(TransferError) {
        // Some form handlers silently drop a part whose name they can't decode.
        guard server.upload == .put || String(validating: attempt.remotePath.bytes, as: UTF8.self) != nil else {
            throw TransferError(
                .permanent, .unsafeName,
                "The remote name \"\(attempt.remotePath)\" is not UTF-8, which forms require; choose another one.")
        }
        self.attempt = attempt
        self.source = source
        self.server = server
        self.disks = disks
        self.reporter = reporter
    }

    var isForm: Bool { server.upload == .form }
    private var names: TransferNames { TransferNames(attempt) }
    private var mediaType: String {
        server.plan.contentType ?? server.options.contentType ?? MediaType.ofFile(named: attempt.remotePath.lastComponent)
    }

    func run() async throws -> TransferReceipt {
        if source.growth != nil, let sent = attempt.checkpoint?.confirmed, sent > 0 {
            throw TransferError(
                .sourceLost, .producerGone,
                "The stream was interrupted after \(sent) bytes. A stream can't resume over plain HTTP. Enqueue it again.")
        }
        let file = try await FileReader.open(source, on: disks.threads(for: source))
        if let growth = source.growth, canSendLive(growth), let receipt = try await sendLive(file, growth) { return receipt }
        let size = try await completeSize()
        let companions = try await FormFiles(server.options, for: source, names).open(on: disks)
        if isForm { reporter.reportRecord() }
        let (answer, length) = try await send(file, size, with: companions)
        guard isSuccess(answer) else { throw answer.uploadFailure(isOneTime: server.givenURL != nil) }
        // If the server responded before all bytes were sent, it does not have the whole file.
        let accepted = answer.response.sent.accepted
        guard accepted == length else { throw answer.earlySuccess(after: accepted, of: length, afterEarlySuccess()) }
        for file in [file] + companions.map(\.reader) { try await file.verifyUnchanged() }
        var receipt = receipt(answer, size)
        if source.growth != nil, !isForm, server.client.quirks.requiresLength(server.origin) {
            receipt.warnings.append("The server \(server.origin) requires the length of a stream, so it was sent after its end.")
        }
        return receipt
    }

    /// Reports that the server has the whole file, and returns its receipt.
    func receipt(_ answer: EndpointResponse, _ size: Int64) -> TransferReceipt {
        source.growth?.confirmed(before: size)
        reporter.report(sent: size, confirmed: size)
        return TransferReceipt(bytes: size, remoteURL: uploadedURL(answer), answer: answer.forReceipt)
    }

    /// Returns the class of the error after a success that came too early. A `PUT` can be repeated (RFC 9110, section 9.2.2), even at
    /// another endpoint. A form must not be sent again, because the server may already have created a record.
    func afterEarlySuccess() -> FailureClass {
        if isForm { return .permanent }
        let successes = server.client.quirks.recordEarlySuccess(attempt.transferID)
        return successes > Self.toleratedEarlySuccesses ? .unsupported : .protocolViolation
    }

    /// Waits until the source is complete, and returns its size. The request must contain the size before the first byte of the file.
    private func completeSize() async throws -> Int64 {
        guard let growth = source.growth else { return source.size }
        try await growth.waitUntilComplete()
        switch growth.extent {
        case .complete(let size): return size
        case .failed(let error): throw error
        case .growing: throw CancellationError()
        }
    }

    var url: String { server.givenURL ?? server.address.upload(names, by: server.upload) }

    /// The headers of a `PUT` for the file.
    var putHeaders: HTTPHeaders {
        var headers: HTTPHeaders = ["Content-Type": mediaType]
        for (name, value) in attempt.options.metadata.sorted(by: { $0.key < $1.key }) {
            headers.append((server.options.metadataPrefix ?? "") + name, value)
        }
        return headers
    }

    private func send(_ file: FileReader, _ size: Int64, with companions: [FormBody.File]) async throws -> (EndpointResponse, length: Int64)
    {
        let reporter = reporter
        let (headers, body, prefix): (HTTPHeaders, HTTPBody, Int64)
        if isForm {
            let form = form(file, size, with: companions)
            (headers, body, prefix) = (["Content-Type": form.contentType], form.body, form.prefixLength)
        } else {
            (headers, body, prefix) = (putHeaders, .file(file, offset: 0, length: size), 0)
        }
        let length = body.length ?? size
        let position = Locked((furthest: Int64(0), accepted: Int64(0)))
        let answer = try await server.send(
            isForm ? "POST" : "PUT", to: url, headers: headers, body: body,
            // A server that rejects the content may close the connection before its response is read, so later attempts always send Expect.
            expectsContinue: prefix + size > (attempt.number > 1 ? 0 : Self.maximumSizeWithoutExpect),
            pacing: { reporter.allowance(upTo: $0) },
            progress: { accepted in
                let (furthest, isRepeated) = position.withLock { position in
                    let hasMoved = position.accepted != accepted
                    let isRepeated = hasMoved && accepted - prefix <= position.furthest
                    // After a redirect, the body is sent again from its first byte.
                    position = (max(position.furthest, min(accepted - prefix, size)), accepted)
                    return (position.furthest, isRepeated)
                }
                // Bytes before the file and repeated bytes count as activity, but not as progress.
                if isRepeated { reporter.reportActivity() }
                reporter.report(sent: furthest, confirmed: 0)
                if accepted == length, length > Self.quickContent { reporter.reportWaiting() }
            })
        return (answer, length)
    }

    private func form(_ file: FileReader, _ size: Int64, with companions: [FormBody.File]) -> FormBody {
        var fields = server.options.fields.mapValues { names.fill($0, percentEncoded: false) }
        fields.merge(attempt.options.metadata) { $1 }
        return FormBody(
            fields: fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, companions: companions,
            file: FormBody.File(
                field: server.options.fileField, name: attempt.remotePath.lastComponent, mediaType: mediaType, reader: file, size: size))
    }

    func isSuccess(_ answer: EndpointResponse) -> Bool {
        (200..<300).contains(answer.status) || (isForm && answer.status == 303) || server.options.acceptedStatuses.contains(answer.status)
    }

    /// The URL of the uploaded file, without its query: that of the `PUT`, or that in the response to a form. Nil if it is unknown or
    /// repeats a secret.
    private func uploadedURL(_ answer: EndpointResponse) -> String? {
        answer.shown(isForm ? answer.response.location?.absoluteString : answer.response.effectiveURL)
    }
}
