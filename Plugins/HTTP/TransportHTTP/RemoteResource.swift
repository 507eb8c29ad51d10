import CurlEngine
import HTTPDownload
import TransferCore

/// A file at a web server that is to be downloaded.
struct RemoteResource: DownloadServer {
    private let server: HTTPServer
    private let path: RemotePath
    private let url: String

    init(_ server: HTTPServer, _ attempt: FileAttempt) throws(TransferError) {
        self.server = server
        path = attempt.remotePath
        url = server.address.download(TransferNames(attempt))
    }

    var name: String { "\(path) at \(server.origin)" }

    // The query may hold a signature.
    var shownURL: String { String(url.prefix { $0 != "?" }) }

    var ignoresRanges: Bool { server.habits.ignoresRanges(shownURL) }

    var parallelThreshold: Int64 { server.settings.parallelThreshold }

    var isChanging: Bool { server.habits.isChanging(shownURL) }

    func noteChange() { server.habits.noteChange(shownURL) }

    func noteIgnoredRange() { server.habits.noteIgnoredRange(shownURL) }

    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer {
        let answer = try await server.send("GET", to: url, headers: headers, sink: sink, pacing: pacing)
        return DownloadAnswer(response: answer.response, refusal: answer.downloadFailure(of: path))
    }
}
