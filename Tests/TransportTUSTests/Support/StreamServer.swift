import Locking
import ScriptedHTTP

/// A tus server with one upload whose length may arrive later (extension *creation-defer-length*), and with configurable faults.
final class StreamServer: Sendable {
    struct State {
        var stored = 0
        var length: Int?
        /// The total number of bytes after which the server breaks one connection. Nil for no break, and after the break.
        var cut: Int?
        /// If set, the server breaks the connection after the request that contains the length. If true, the server stores the length
        /// before the break. Nil after the break.
        var keepsLengthAtCut: Bool?
        /// The number of requests to which the server will respond with a checksum mismatch.
        var mismatches = 0
    }

    /// Whether the server rejects content before it knows the length.
    let requiresLengthFirst: Bool
    let state: Locked<State>

    init(cut: Int? = nil, keepsLengthAtCut: Bool? = nil, mismatches: Int = 0, requiresLengthFirst: Bool = false) {
        self.requiresLengthFirst = requiresLengthFirst
        state = Locked(State(cut: cut, keepsLengthAtCut: keepsLengthAtCut, mismatches: mismatches))
    }

    var isComplete: Bool { state.withLock { $0.stored == $0.length } }

    func steps(_ request: ReceivedRequest) -> [ServerStep] {
        state.withLock { state in
            switch request.method {
            case "POST":
                state.length = request.headers["upload-length"].flatMap { Int($0) }
                return [.created]
            case "HEAD": return [.offset(state.stored, of: state.length)]
            default: return patch(request, &state)
            }
        }
    }

    private func patch(_ request: ReceivedRequest, _ state: inout State) -> [ServerStep] {
        let interimSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
        let declaredLength = request.headers["upload-length"].flatMap { Int($0) }
        guard request.headers["upload-offset"] == "\(state.stored)" else { return interimSteps + [.tus(409)] }
        // The length may be sent only once (tus 1.0.0, "Upload-Defer-Length").
        if declaredLength != nil, state.length != nil { return interimSteps + [.tus(403)] }
        if declaredLength == nil, state.length == nil, requiresLengthFirst { return interimSteps + [.tus(400)] }
        if state.mismatches > 0 {
            state.mismatches -= 1
            return interimSteps + [.tus(460)]
        }
        if let cut = state.cut, state.stored + request.contentLength >= cut {
            state.cut = nil
            let count = cut - state.stored
            state.stored = cut
            return interimSteps + [.read(count), .reset]
        }
        if let isKept = state.keepsLengthAtCut, declaredLength != nil {
            state.keepsLengthAtCut = nil
            state.stored += request.contentLength
            if isKept { state.length = declaredLength }
            return interimSteps + [.read(nil), .reset]
        }
        if let declaredLength { state.length = declaredLength }
        state.stored += request.contentLength
        return interimSteps + [.accepted(state.stored)]
    }
}
