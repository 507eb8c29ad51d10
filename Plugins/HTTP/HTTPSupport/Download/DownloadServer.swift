package import CurlEngine
package import TransferCore
package import TransportSupport

/// Sends the requests of one download.
package protocol DownloadServer: Sendable {
    /// The file and the server in messages, for example `a/b.bin at https://example.org`.
    var name: String { get }

    /// The URL of the file without parts that may be secret.
    var shownURL: String { get }

    /// What earlier requests showed about servers.
    var quirks: ServerQuirks { get }

    /// The file, as the quirks know it.
    var file: ServerQuirks.File { get }

    /// The size in bytes from which a file is downloaded in several segments, if a session asks for that.
    var parallelThreshold: Int64 { get }

    /// Whether the server names the file (`Content-Disposition`) unless the app does.
    var namesFiles: Bool { get }

    /// Requests the file (RFC 9110, section 9.3.1).
    ///
    /// - Parameter threads: The threads that the sink writes on.
    /// - Returns: Any response, and the error to throw if it is not the file.
    /// - Throws: A ``TransferError`` if there is no complete response, the sink's error, or `CancellationError`.
    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads,
        pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer
}

/// A response to a request for a file.
package struct DownloadAnswer: Sendable {
    package var response: HTTPResponse
    /// The error to throw if the response is not the file.
    package var refusal: TransferError

    package init(response: HTTPResponse, refusal: TransferError) {
        self.response = response
        self.refusal = refusal
    }
}
