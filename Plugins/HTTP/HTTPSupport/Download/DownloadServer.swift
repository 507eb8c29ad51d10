package import CurlEngine
package import TransferCore
package import TransportSupport

/// Sends the requests of one download, with whatever its server wants on them.
package protocol DownloadServer: Sendable {
    /// How errors call the file and the server, for example `a/b.bin at https://example.org`.
    var name: String { get }

    /// Where the file is, without what may be a secret.
    var shownURL: String { get }

    /// What earlier requests showed about servers.
    var quirks: ServerQuirks { get }

    /// The file, as the quirks know it.
    var file: ServerQuirks.File { get }

    /// From how many bytes on a file is received in several parts at once, where a session asks for that.
    var parallelThreshold: Int64 { get }

    /// Whether a file is called what the server says (`Content-Disposition`), unless the app named it.
    var namesFiles: Bool { get }

    /// Asks for the file (RFC 9110, section 9.3.1).
    ///
    /// - Parameter threads: Those of the disk that the sink writes to.
    /// - Returns: Whatever the server answers, and the error for that if it is not the file.
    /// - Throws: A ``TransferError`` if there is no complete answer, what the sink throws, or `CancellationError`.
    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads,
        pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer
}

/// What a server answers to a request for a file.
package struct DownloadAnswer: Sendable {
    package var response: HTTPResponse
    /// The error for it, if it is not the file.
    package var refusal: TransferError

    package init(response: HTTPResponse, refusal: TransferError) {
        self.response = response
        self.refusal = refusal
    }
}
