import Locking
import ScriptedHTTP
import TransferCore

/// A server of the IETF protocol *Resumable Uploads for HTTP* with one upload. The server stores all received bytes, and breaks one connection at
/// a chosen byte.
final class ResourceServer: Sendable {
    /// Where the server breaks the connection.
    enum Cut: Sendable {
        /// After the given number of bytes of a final response, not counting interim responses.
        case answer(Int)
        /// After the given number of bytes of a request's content, which the server stores.
        case content(Int)
        /// After the given number of bytes of the interim response. The server does not read the content.
        case interim(Int)
    }

    struct State {
        var stored = 0
        var isComplete = false
        var exists = false
        var cut: (method: String, cut: Cut)?
    }

    static let versions = ["3", "5", "6", "8", "9", "10", "final"]

    let version: String
    let announces: Bool
    let state: Locked<State>

    init(version: String, announces: Bool = true, _ method: String, _ cut: Cut?) {
        self.version = version
        self.announces = announces
        state = Locked(State(cut: cut.map { (method, $0) }))
    }

    /// The header line with the version; empty in the final protocol.
    static func versionLine(_ version: String) -> String { version == "final" ? "" : "Upload-Draft-Interop-Version: \(version)\r\n" }

    /// An interim response; by default, the response that announces the upload.
    static func interim(_ version: String, _ lines: String = "Location: /up/1\r\n") -> String {
        "HTTP/1.1 104 Upload Resumption Supported\r\n\(versionLine(version))\(lines)\r\n"
    }

    static func completeness(_ isComplete: Bool, _ version: String) -> String {
        version == "3" ? "Upload-Incomplete: ?\(isComplete ? 0 : 1)\r\n" : "Upload-Complete: ?\(isComplete ? 1 : 0)\r\n"
    }

    static func options(_ version: String, limits: String? = nil) -> [ServerStep] {
        let limit = limits.map { "Upload-Limit: \($0)\r\n" } ?? ""
        return [.raw("HTTP/1.1 204 No Content\r\n\(versionLine(version))Accept-Patch: application/partial-upload\r\n\(limit)\r\n")]
    }

    func answer(to method: String, _ state: State) -> String {
        let line = Self.completeness(state.isComplete, version)
        switch (method, state.isComplete) {
        case ("HEAD", _): return "HTTP/1.1 204 No Content\r\n\(line)Upload-Offset: \(state.stored)\r\nCache-Control: no-store\r\n\r\n"
        case (_, true): return "HTTP/1.1 200 OK\r\n\(line)Location: /files/done\r\nContent-Length: 2\r\n\r\nok"
        case ("PATCH", false): return "HTTP/1.1 204 No Content\r\n\(line)Upload-Offset: \(state.stored)\r\n\r\n"
        default: return "HTTP/1.1 201 Created\r\n\(line)Location: /up/1\r\nContent-Length: 0\r\n\r\n"
        }
    }

    func steps(_ request: ReceivedRequest) -> [ServerStep] {
        state.withLock { state in
            let method = request.method
            let cut = state.cut.flatMap { $0.method == method ? $0.cut : nil }
            if cut != nil { state.cut = nil }
            let continueSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
            let announced: [ServerStep] = method == "POST" && announces ? [.raw(Self.interim(version))] : []
            if method == "DELETE" {
                state.exists = false
                return [.answer(204)]
            }
            if method == "POST" {
                state.exists = true
                state.stored = 0
                state.isComplete = false
            }
            guard state.exists else { return [.answer(404)] }
            if case .interim(let count)? = cut {
                return [.raw(String(decoding: Self.interim(version).utf8.prefix(count), as: UTF8.self)), .close]
            }
            if case .content(let count)? = cut {
                state.stored += count
                return announced + continueSteps + [.read(count), .reset]
            }
            let isLast = request.headers["upload-complete"] == "?1" || request.headers["upload-incomplete"] == "?0"
            state.stored += request.contentLength
            state.isComplete = state.isComplete || isLast && method != "HEAD"
            let answer = answer(to: method, state)
            guard case .answer(let count)? = cut else { return announced + continueSteps + [.read(nil), .raw(answer)] }
            return announced + continueSteps + [.read(nil), .raw(String(decoding: answer.utf8.prefix(count), as: UTF8.self)), .close]
        }
    }
}

extension TestUpload {
    /// An upload with the IETF protocol.
    ///
    /// - Parameters:
    ///   - version: The version that the server names in response to `OPTIONS`.
    ///   - limits: The limits in the response to `OPTIONS`.
    static func resource(
        size: Int, version: String = "8", limits: String? = nil, _ script: @escaping ScriptedServer.Script
    ) throws -> TestUpload {
        var upload = try TestUpload(size: size, options: ResourceServer.options(version, limits: limits), script)
        upload.endpoint.settings["dialect"] = "ietf"
        return upload
    }

    static func resource(size: Int, version: String = "8", limits: String? = nil, answers: [[ServerStep]]) throws -> TestUpload {
        try resource(size: size, version: version, limits: limits) { _, number in number < answers.count ? answers[number] : [.silence] }
    }
}
