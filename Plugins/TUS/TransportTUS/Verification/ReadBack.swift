import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

/// Verifies a file by reading it back, for servers that do not compare checksums but offer downloads.
struct ReadBack {
    /// The number of bytes that stay unconfirmed until the comparison. The comparison confirms them gradually, to show its progress.
    private static let unconfirmedBytes: Int64 = 1 << 20

    let server: TUSServer
    let file: FileReader
    let record: TUSUploadRecord
    let threads: WorkerThreads
    let reporter: AttemptReporter

    private var size: Int64 { file.source.size }

    /// Keeps the last bytes of the file unconfirmed until the comparison. Call this method before any byte is confirmed.
    func begin() {
        record.limitConfirmed(to: size - min(size, Self.unconfirmedBytes))
    }

    /// Checks, before any byte is sent, that the server allows the download of uploads.
    ///
    /// - Parameters:
    ///   - url: The URL of the upload, which has no content yet.
    ///   - metadata: The metadata for a temporary upload of length 0, created only for this check.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the server offers no downloads. The upload is then
    ///   removed, if the server allows that.
    func probe(_ url: String, metadata: UploadMetadata) async throws {
        var status = try await status(of: url)
        // Some servers offer only complete uploads. An upload with the length 0 is complete immediately.
        if status == 404 { status = try await statusOfEmptyUpload(metadata) }
        // 204 and 416 are valid responses for an empty upload.
        if (200..<300).contains(status) || status == 416 { return }
        var failure = unverifiable(status)
        failure.retryAfter = await server.removeIfAllowed([url])?.retryAfter
        throw failure
    }

    /// Checks, with an upload that the app supplied, that the server allows the download of uploads. Does not change or create uploads.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if the server offers no downloads.
    func probe(given url: String) async throws {
        let status = try await status(of: url)
        if status == 405 || status == 501 { throw unverifiable(status) }
    }

    private func unverifiable(_ status: Int) -> TransferError {
        TransferError(
            .unsupported, .unsupported,
            "The server \(server.origin) does not compare checksums and does not allow the download of "
                + "uploads, so uploads can't be verified. Use --verify size.",
            cause: "GET returned \(status)")
    }

    /// Creates an upload of length 0, returns the status of its download, and removes it.
    private func statusOfEmptyUpload(_ metadata: UploadMetadata) async throws -> Int {
        let url = try await server.created(
            try await server.requestCreation(metadata, headers: [server.dialect.lengthHeader: "0"]))
        let status = try await status(of: url)
        if let backOffError = await server.removeIfAllowed([url]) { throw backOffError }
        return status
    }

    /// Returns the status of the response to a `GET` request.
    ///
    /// - Throws: The error for a temporary failure, which does not show whether downloads are supported.
    private func status(of url: String) async throws -> Int {
        let tusResponse = try await server.convertingErrors(.get) { try await server.send(.get, to: url) }
        let isTemporary = [408, 423, 429].contains(tusResponse.status) || (tusResponse.status >= 500 && tusResponse.status != 501)
        guard !isTemporary else { throw try await server.refused(tusResponse) }
        return tusResponse.status
    }

    /// Reads the whole file back and compares it with the local file.
    ///
    /// - Returns: The checksum of both files.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/resumeLost`` if the files differ. The upload is then removed, if the
    ///   server allows that.
    func compare(_ url: String) async throws -> String {
        let (size, record) = (size, record)
        let sink = HashingSink(upTo: size)
        let tusResponse: TUSResponse
        do {
            tusResponse = try await server.convertingErrors(.get) {
                try await server.send(
                    .get, to: url, sink: sink,
                    progress: { record.confirmWhileReadingBack($0, of: size, from: size - min(size, Self.unconfirmedBytes)) })
            }
        } catch is HashingSink.ExceedsLimit {
            throw try await mismatch()
        }
        guard tusResponse.status == 200 else { throw try await server.refused(tusResponse) }
        let local = try await threads.checksum(
            .sha256, of: 0..<size, reading: { [file] in try file.bytes($0) }, progress: reporter.reportActivity)
        let remote = sink.result
        guard remote.bytes == size, remote.checksum == local else { throw try await mismatch() }
        record.limitConfirmed(to: .max)
        try await record.confirm(size, of: .whole)
        return local.text
    }

    /// Removes the upload, if the server allows that, and returns the error for a difference. If the source has changed, throws the error for
    /// the change instead, because the difference then proves nothing.
    private func mismatch() async throws -> TransferError {
        try await file.verifyUnchanged()
        let backOffError = await server.removeIfAllowed(record.checkpoint.ownURLs)
        return TransferError(
            .resumeLost, .checksumMismatch, "The upload at \(server.origin) differs from its source.", retryAfter: backOffError?.retryAfter)
    }
}
