import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// A file on a tus server to download. The protocol has no downloads: servers that offer them do it as any web server.
struct RemoteContent: DownloadServer {
    private let server: TUSServer
    private let path: RemotePath
    private let url: String

    init(_ server: TUSServer, path: RemotePath) {
        self.server = server
        self.path = path
        var components = URLComponents(string: server.address) ?? URLComponents()
        let folder = components.percentEncodedPath
        components.percentEncodedPath = folder + (folder.hasSuffix("/") ? "" : "/") + path.percentEncoded
        url = components.string ?? server.address
    }

    var name: String { "\(path) at \(server.origin)" }

    // The query may hold a signature.
    var shownURL: String { String(url.prefix { $0 != "?" }) }

    var quirks: ServerQuirks { server.quirks }

    var file: ServerQuirks.File { ServerQuirks.File(endpoint: server.address, path: path) }

    var namesFiles: Bool { server.settings.namesDownloads }

    var parallelThreshold: Int64 { server.settings.parallelThreshold }

    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads,
        pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer {
        do {
            let answer = try await server.send(.get, to: url, headers: headers, sink: sink, writingOn: threads, pacing: pacing)
            return DownloadAnswer(response: answer.response, refusal: answer.downloadFailure(of: path))
        } catch let error as CurlEngineError {
            throw server.client.transferError(error, at: url, isEndpoint: false)
        }
    }
}
