import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

/// Verifies that the server has the content of a `PUT`.
///
/// Uses the best evidence that the server offers: a checksum of the stored file (`Repr-Digest`, RFC 9530), an entity tag that equals a
/// checksum of the content, the content itself, or only its size.
struct UploadVerification {
    let server: HTTPEndpointClient
    let url: String
    let file: FileReader
    let size: Int64
    let verification: Verification
    /// Whether the content can be read again. A stream that was sent while the app produced it can't be read again.
    let canReadAgain: Bool
    let threads: WorkerThreads
    let reporter: AttemptReporter

    /// The headers that request a checksum in the response to the `PUT`; empty unless the session requires checksums.
    static func requestHeaders(_ verification: Verification) -> HTTPHeaders {
        verification == .checksum ? Checksum.requestHeaders : HTTPHeaders()
    }

    /// Verifies the upload.
    ///
    /// - Parameter endpointResponse: The response to the `PUT`, a success.
    /// - Returns: The checksum of the file if it was compared, and warnings.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/resumeLost`` if the server's file differs, and ``FailureClass/unsupported`` if a
    ///   checksum is required but the server offers no evidence of the content.
    func verify(_ endpointResponse: EndpointResponse) async throws -> (checksum: Checksum?, warnings: [String]) {
        guard verification != .none else { return (nil, []) }
        if let checksum = try await compare(digest(inResponseToPUT: endpointResponse), endpointResponse) { return (checksum, []) }
        guard verification == .checksum else {
            return server.options.uploadCheck == .head ? try await compareSize() : (nil, [])
        }
        if let checksum = try await proof(inTagOf: endpointResponse) { return (checksum, []) }
        let head = try await requestEvidence("HEAD", Checksum.requestHeaders)
        if isSuccess(head) {
            try await compareSize(in: head)
            if let checksum = try await compare(Checksum(head.response.headers, isWhole: false), head) { return (checksum, []) }
            if let checksum = try await proof(inTagOf: head) { return (checksum, []) }
        }
        return (try await readBack(), [])
    }

    // MARK: Evidence

    /// The checksum of the stored file. If the response has content, `Repr-Digest` can describe that content instead of the file (RFC 9530,
    /// section 3.1).
    private func digest(inResponseToPUT endpointResponse: EndpointResponse) -> Checksum? {
        guard isSuccess(endpointResponse), endpointResponse.response.body.isEmpty, !endpointResponse.response.isBodyTruncated else {
            return nil
        }
        return Checksum(endpointResponse.response.headers, isWhole: false)
    }

    /// Compares a checksum from a response with the source's checksum.
    ///
    /// - Returns: The checksum; nil if the response has no checksum, the checksum proves nothing, or the source can't be read again.
    private func compare(_ digest: Checksum?, _ endpointResponse: EndpointResponse) async throws -> Checksum? {
        guard let digest, canReadAgain else { return nil }
        guard try await sourceChecksum(digest.algorithm) == digest else {
            // With a content coding, the checksum covers the encoded content (RFC 9530, section 2). Some servers send the checksum of an
            // empty response. Neither proves a difference.
            let isOfEmptyContent = size > 0 && digest == RunningChecksum(digest.algorithm).checksum
            if endpointResponse.response.headers.hasContentCoding || isOfEmptyContent { return nil }
            throw try await mismatch(
                "The server \(endpointResponse.origin) reports the checksum \(digest.text) for the file, which differs from its source.")
        }
        return digest
    }

    /// Returns the checksum in a response's strong entity tag, if it equals the source's checksum. Object stores use such tags for some files. A
    /// different tag proves nothing, because servers choose tags freely (RFC 9110, section 8.8.3).
    private func proof(inTagOf endpointResponse: EndpointResponse) async throws -> Checksum? {
        guard isSuccess(endpointResponse), let tag = endpointResponse.response.headers["ETag"], tag.hasPrefix("\""),
            tag.hasSuffix("\"")
        else { return nil }
        let digits = tag.dropFirst().dropLast()
        for algorithm in ChecksumAlgorithm.allCases {
            guard let checksum = Checksum(algorithm, digits: digits) else { continue }
            return try await sourceChecksum(algorithm) == checksum ? checksum : nil
        }
        return nil
    }

    /// Compares the size in the response to a `HEAD` request with the source's size, and the checksum in the response if it has one. Returns a
    /// warning if the server does not report the size, or if the request fails although the file may be complete.
    private func compareSize() async throws -> (checksum: Checksum?, warnings: [String]) {
        let head: EndpointResponse
        do {
            head = try await requestEvidence("HEAD")
        } catch let error as TransferError where !canReadAgain || error.failureClass == .transient {
            // The server reported success. A stream can't be sent again, and a busy server does not prove that the file differs.
            return (nil, ["The size of the uploaded file is unverified: \(error.message)"])
        }
        if head.status == 404 || head.status == 410 {
            throw try await mismatch(
                "The server \(head.origin) accepted the file, but HEAD returned \(head.status), so the file is missing there.")
        }
        guard isSuccess(head), try await compareSize(in: head) else {
            return (nil, ["The size of the uploaded file is unverified: HEAD at \(head.origin) returned \(head.status) without a size."])
        }
        return (try await compare(Checksum(head.response.headers, isWhole: false), head), [])
    }

    /// Compares the size in a response with the source's size.
    ///
    /// - Returns: Whether the response contains the size of the file.
    /// - Throws: The error for a different size.
    @discardableResult
    private func compareSize(in head: EndpointResponse) async throws -> Bool {
        let headers = head.response.headers
        // With a content coding, the length is the length of the encoded content.
        guard !headers.hasContentCoding, let stored = RemoteFile.length(status: head.status, headers: headers) else {
            return false
        }
        guard stored == size else {
            throw try await mismatch("The server \(head.origin) has a file of \(stored) bytes instead of \(size).")
        }
        return true
    }

    private func readBack() async throws -> Checksum {
        let sink = HashingSink(upTo: size)
        let endpointResponse: EndpointResponse
        do {
            endpointResponse = try await requestEvidence("GET", sink: sink)
        } catch is HashingSink.ExceedsLimit {
            throw try await mismatch("The file at \(server.origin) is longer than its source.")
        }
        guard endpointResponse.status == 200, !endpointResponse.response.headers.hasContentCoding else {
            throw endpointResponse.error(
                .unsupported, .unsupported,
                "received the file, but offers neither its checksum nor its content, so the upload can't be verified; choose another verification"
            )
        }
        let (local, remote) = (try await sourceChecksum(.sha256), sink.result)
        guard remote.bytes == size, remote.checksum == local else {
            throw try await mismatch("The file at \(endpointResponse.origin) differs from its source.")
        }
        return local
    }

    // MARK: Requests

    /// Sends a request for evidence, and returns the response, even if the server does not offer the evidence.
    ///
    /// - Throws: The error of the request, or ``EndpointResponse/commonFailure`` except for a 501.
    private func requestEvidence(
        _ method: String, _ headers: HTTPHeaders = HTTPHeaders(), sink: (any HTTPResponseSink)? = nil
    ) async throws -> EndpointResponse {
        reporter.reportWaiting()
        // The checksum and the length must describe the file itself.
        var headers = headers
        headers["Accept-Encoding"] = "identity"
        let endpointResponse = try await server.send(
            method, to: url, headers: headers, sink: sink, writingOn: sink == nil ? nil : threads,
            pacing: { reporter.allowance(upTo: $0) }, progress: { _ in reporter.reportActivity() },
            prepare: HTTPEndpointClient.removeConditions)
        // Such a failure does not show what the server offers. A 501 shows that the server does not support the method.
        if let failure = endpointResponse.commonFailure, endpointResponse.status != 501 { throw failure }
        return endpointResponse
    }

    private func isSuccess(_ endpointResponse: EndpointResponse) -> Bool { (200..<300).contains(endpointResponse.status) }

    private func sourceChecksum(_ algorithm: ChecksumAlgorithm) async throws -> Checksum {
        try await threads.checksum(
            algorithm, of: 0..<size, reading: { [file] in try file.bytes($0) }, progress: reporter.reportActivity)
    }

    /// Returns the error for a difference. If the source has changed, throws the error for the change instead, because the difference then
    /// proves nothing.
    private func mismatch(_ message: String) async throws -> TransferError {
        try await file.verifyUnchanged()
        return TransferError(.resumeLost, .checksumMismatch, message)
    }
}
