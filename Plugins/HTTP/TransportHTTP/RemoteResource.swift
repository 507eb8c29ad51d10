import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

/// A file on a web server to download.
struct RemoteResource: DownloadServer {
    private let server: HTTPServer
    private let path: RemotePath
    private let url: String
    let file: ServerQuirks.File
    var quirks: ServerQuirks { server.quirks }

    init(_ server: HTTPServer, _ attempt: FileAttempt) throws(TransferError) {
        self.server = server
        path = attempt.remotePath
        url = server.address.download(TransferNames(attempt))
        file = ServerQuirks.File(endpoint: attempt.endpoint.address, path: attempt.remotePath)
    }

    var name: String { "\(path) at \(server.origin)" }

    // The query may hold a signature.
    var shownURL: String { String(url.prefix { $0 != "?" }) }

    var namesFiles: Bool { server.settings.namesDownloads }

    var parallelThreshold: Int64 { server.settings.parallelThreshold }

    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads,
        pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer {
        let answer = try await server.send("GET", to: url, headers: headers, sink: sink, writingOn: threads, pacing: pacing)
        return DownloadAnswer(response: answer.response, refusal: answer.downloadFailure(of: path))
    }
}
