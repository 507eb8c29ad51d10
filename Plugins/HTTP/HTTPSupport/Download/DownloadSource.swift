package import CurlEngine
package import TransferCore
package import TransportSupport

/// A file to download from a server.
package struct DownloadSource: Sendable {
    /// Sends a request for the file (RFC 9110, section 9.3.1).
    ///
    /// Returns the response, regardless of its status, and the error to throw if the response is not the file. Throws a ``TransferError`` if
    /// there is no complete response, the sink's error, or `CancellationError`.
    package typealias Get =
        @Sendable (
            _ headers: HTTPHeaders, _ sink: any HTTPResponseSink, _ threads: WorkerThreads,
            _ pacing: @escaping @Sendable (Int) -> Allowance
        ) async throws -> (response: HTTPResponse, refusal: TransferError)

    /// The text that names the file and the server in messages, for example `a/b.bin at https://example.org`.
    let name: String
    /// The URL of the file without its query, which may be secret.
    let shownURL: String
    let quirks: ServerQuirks
    /// The key of the file in ``quirks``.
    let file: ServerQuirks.File
    let options: RequestOptions
    let get: Get

    package init(_ attempt: FileAttempt, at url: String, of client: EndpointClient, _ get: @escaping Get) {
        name = "\(attempt.remotePath) at \(client.origin)"
        shownURL = String(url.prefix { $0 != "?" })
        quirks = client.quirks
        file = ServerQuirks.File(endpoint: client.endpointAddress, path: attempt.remotePath)
        options = client.options
        self.get = get
    }
}
