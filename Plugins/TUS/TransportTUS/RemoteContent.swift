import CurlEngine
import Foundation
import HTTPDownload
import TransferCore

/// A file at a tus server that is to be downloaded. The protocol knows no downloads: servers that give files back do it as any web server does.
struct RemoteContent: DownloadServer {
    private let server: TUSServer
    private let path: RemotePath
    private let url: String

    init(_ server: TUSServer, path: RemotePath) {
        self.server = server
        self.path = path
        var components = URLComponents(string: server.address) ?? URLComponents()
        let folder = components.percentEncodedPath
        components.percentEncodedPath = folder + (folder.hasSuffix("/") ? "" : "/") + Self.encoded(path)
        url = components.string ?? server.address
    }

    /// With all but the characters that are never special as their codes (RFC 3986, section 2.3).
    private static func encoded(_ path: RemotePath) -> String {
        path.bytes.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain = character.isASCII && (character.isLetter || character.isNumber || "-._~/".contains(character))
            return isPlain ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }

    var name: String { "\(path) at \(server.origin)" }

    // The query may hold a signature.
    var shownURL: String { String(url.prefix { $0 != "?" }) }

    var ignoresRanges: Bool { server.memory.habits(of: server.address).ignoresRanges }

    func noteIgnoredRange() {
        server.memory.learn(of: server.address) { $0.ignoresRanges = true }
    }

    func get(
        _ headers: HTTPHeaders, into sink: any HTTPResponseSink, pacing: @escaping @Sendable (Int) -> Allowance
    ) async throws -> DownloadAnswer {
        do {
            let answer = try await server.send(.get, to: url, headers: headers, sink: sink, pacing: pacing)
            return DownloadAnswer(response: answer.response, refusal: answer.downloadFailure(of: path))
        } catch let error as CurlEngineError {
            throw error.transferError(.get, at: server.origin)
        }
    }
}
