import Locking
import ScriptedHTTP
import SystemPackage
import TransferCore

/// A tus server with one upload whose length may arrive later (extension *creation-defer-length*), and with configurable faults.
final class StreamServer: Sendable {
    struct State {
        /// The number of stored bytes.
        var stored = 0
        /// The length of the upload, if it is known.
        var length: Int?
        /// The total number of bytes after which the server breaks one connection. Nil for no break, and after the break.
        var cut: Int?
        /// If set, the server breaks the connection after the request that contains the length. If true, it stores the length before the
        /// break. Nil after the break.
        var keepsLengthAtCut: Bool?
        /// The number of requests to which the server will respond with a checksum mismatch.
        var mismatches = 0
    }

    /// Whether the server refuses content before it knows the length.
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

/// A stream that an app writes to a file, a given number of bytes ahead of the confirmed offset. Confirmed bytes are overwritten with zeros, because
/// the queue returns their space to the disk.
struct TestStream {
    let source: UploadSource
    /// Whether the transport requested all remaining bytes of the stream.
    let wasRequested: Locked<Bool>

    /// - Parameters:
    ///   - ahead: The number of bytes that the app writes ahead of the confirmed offset. The transport learns the end of the stream when
    ///     the app would write more than `total` bytes.
    ///   - length: The length that the app announces, or nil.
    ///   - end: The state that follows the last byte, such as a failure. Nil for a complete stream.
    ///   - onEnd: Called before the end is reported.
    init(
        _ file: TemporaryFile, total: Int, ahead: Int, length: Int? = nil, end: SourceGrowth.Extent? = nil,
        onEnd: @escaping @Sendable () -> Void = {}
    ) throws {
        let (growth, wasRequested, path) = (Locked<SourceGrowth?>(nil), Locked(false), file.path)
        let advance: @Sendable (Int) -> Void = { reach in
            let isEnd = reach > total
            if isEnd { onEnd() }
            growth.withLock { $0 }?.update(isEnd ? end ?? .complete(Int64(total)) : .growing(Int64(reach)))
        }
        let made = SourceGrowth(
            .growing(0), length: length.map { Int64($0) },
            release: { offset in
                Self.clear(path, before: Int(offset))
                advance(Int(offset) + ahead)
            },
            lift: { offset in
                guard offset == .max else { return }
                wasRequested.withLock { $0 = true }
                advance(.max)
            })
        growth.withLock { $0 = made }
        advance(ahead)
        self.wasRequested = wasRequested
        source = UploadSource(path: path, identity: try file.source.identity, growth: made)
    }

    private static func clear(_ path: FilePath, before offset: Int) {
        guard let file = try? FileDescriptor.open(path, .writeOnly) else { return }
        _ = try? file.closeAfter { try file.writeAll(toAbsoluteOffset: 0, [UInt8](repeating: 0, count: offset)) }
    }
}
