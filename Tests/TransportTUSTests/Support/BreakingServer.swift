import Locking
import ScriptedHTTP
import TransferCore

/// A tus server with one upload. The server stores all received bytes, and breaks one connection at a chosen byte.
final class BreakingServer: Sendable {
    /// Where the server breaks the connection.
    enum Cut: Sendable {
        /// After the given number of bytes of a response.
        case answer(Int)
        /// After the given number of bytes of a request's content, which the server stores.
        case content(Int)
        /// After the given number of bytes of the interim response. The server does not read the content.
        case interim(Int)
        /// After the given number of bytes of a body that is sent as one HTTP chunk. The server stores `keeping` bytes of the content.
        case chunk(Int, keeping: Int)
    }

    struct State {
        var stored = 0
        var cut: (method: String, cut: Cut)?
    }

    static let interim = "HTTP/1.1 100 Continue\r\n\r\n"

    let size: Int
    let state: Locked<State>

    init(size: Int, stored: Int = 0, _ method: String, _ cut: Cut) {
        self.size = size
        state = Locked(State(stored: stored, cut: (method, cut)))
    }

    static func answer(to method: String, offset: Int, size: Int) -> String {
        let head =
            switch method {
            case "POST": "HTTP/1.1 201 Created\r\nLocation: /files/1\r\nContent-Length: 2\r\n"
            case "HEAD": "HTTP/1.1 200 OK\r\nUpload-Length: \(size)\r\nCache-Control: no-store\r\n"
            default: "HTTP/1.1 204 No Content\r\n"
            }
        return head + "Tus-Resumable: 1.0.0\r\nUpload-Offset: \(offset)\r\n\r\n" + (method == "POST" ? "ok" : "")
    }

    func steps(_ request: ReceivedRequest) -> [ServerStep] {
        state.withLock { state in
            let cut = state.cut.flatMap { $0.method == request.method ? $0.cut : nil }
            if cut != nil { state.cut = nil }
            let interimSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw(Self.interim)]
            if case .interim(let count)? = cut { return [.raw(String(decoding: Self.interim.utf8.prefix(count), as: UTF8.self)), .close] }
            if case .content(let count)? = cut {
                state.stored += count
                return interimSteps + [.read(count), .reset]
            }
            if case .chunk(let count, let kept)? = cut {
                state.stored += kept
                return interimSteps + [.skip(count), .reset]
            }
            state.stored = request.isChunked ? size : state.stored + request.contentLength
            let answer = Self.answer(to: request.method, offset: state.stored, size: size)
            guard case .answer(let count)? = cut else { return interimSteps + [.read(nil), .raw(answer)] }
            return interimSteps + [.read(nil), .raw(String(decoding: answer.utf8.prefix(count), as: UTF8.self)), .close]
        }
    }
}
