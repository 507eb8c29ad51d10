import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension TUSServer {
    /// The file that an attempt downloads. The protocol has no downloads; servers that offer them use plain HTTP.
    func source(_ attempt: FileAttempt) -> DownloadSource {
        var components = URLComponents(string: address) ?? URLComponents()
        let folder = components.percentEncodedPath
        components.percentEncodedPath = folder + (folder.hasSuffix("/") ? "" : "/") + attempt.remotePath.percentEncoded
        let url = components.string ?? address
        return DownloadSource(attempt, at: url, of: client) { headers, sink, threads, pacing in
            do {
                let tusResponse = try await send(.get, to: url, headers: headers, sink: sink, writingOn: threads, pacing: pacing)
                return (tusResponse.response, tusResponse.downloadFailure(of: attempt.remotePath))
            } catch let error as CurlEngineError {
                throw client.transferError(error, at: url, isEndpoint: false)
            }
        }
    }
}
