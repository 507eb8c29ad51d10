import Locking
import ScriptedHTTP
import SystemPackage
import TransferCore

/// A tus server of one upload whose length it may learn later (extension *creation-defer-length*), which does what a test wants wrong.
final class StreamServer: Sendable {
    struct State {
        /// How many bytes it keeps.
        var stored = 0
        /// What the upload is to have, as far as it was told.
        var length: Int?
        /// After how many bytes in all it breaks the connection, once.
        var cut: Int?
        /// Whether it keeps the length when it breaks the connection, once, after a request that tells it; nil for no such cut.
        var keepsLengthAtCut: Bool?
        /// How many more times it finds that content has another checksum than it was sent with.
        var mismatches = 0
    }

    /// Refuses content before it was told the length.
    let wantsLengthFirst: Bool
    let state: Locked<State>

    init(cut: Int? = nil, keepsLengthAtCut: Bool? = nil, mismatches: Int = 0, wantsLengthFirst: Bool = false) {
        self.wantsLengthFirst = wantsLengthFirst
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
        let asked: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
        let told = request.headers["upload-length"].flatMap { Int($0) }
        guard request.headers["upload-offset"] == "\(state.stored)" else { return asked + [.tus(409)] }
        // The length may be told once (tus 1.0.0, "Upload-Defer-Length").
        if told != nil, state.length != nil { return asked + [.tus(403)] }
        if told == nil, state.length == nil, wantsLengthFirst { return asked + [.tus(400)] }
        if state.mismatches > 0 {
            state.mismatches -= 1
            return asked + [.tus(460)]
        }
        if let cut = state.cut, state.stored + request.contentLength >= cut {
            state.cut = nil
            let count = cut - state.stored
            state.stored = cut
            return asked + [.read(count), .reset]
        }
        if let isKept = state.keepsLengthAtCut, told != nil {
            state.keepsLengthAtCut = nil
            state.stored += request.contentLength
            if isKept { state.length = told }
            return asked + [.read(nil), .reset]
        }
        if let told { state.length = told }
        state.stored += request.contentLength
        return asked + [.accepted(state.stored)]
    }
}

/// An app's stream in a file, so far ahead of what is confirmed. What was confirmed is overwritten, as the queue gives it back to the disk.
struct TestStream {
    let source: UploadSource
    /// Opens when all of the stream was asked for at once.
    let wasWanted: Locked<Bool>

    /// - Parameters:
    ///   - ahead: How many bytes; the stream is known to have ended when there are more than it has.
    ///   - length: What the app says that there will be.
    ///   - end: What comes after the last byte; nil for the stream's end.
    ///   - onEnd: Called before that.
    init(
        _ file: TemporaryFile, total: Int, ahead: Int, length: Int? = nil, end: SourceGrowth.Extent? = nil,
        onEnd: @escaping @Sendable () -> Void = {}
    ) throws {
        let (growth, wasWanted, path) = (Locked<SourceGrowth?>(nil), Locked(false), file.path)
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
                wasWanted.withLock { $0 = true }
                advance(.max)
            })
        growth.withLock { $0 = made }
        advance(ahead)
        self.wasWanted = wasWanted
        source = UploadSource(path: path, identity: try file.source.identity, growth: made)
    }

    private static func clear(_ path: FilePath, before offset: Int) {
        guard let file = try? FileDescriptor.open(path, .writeOnly) else { return }
        _ = try? file.closeAfter { try file.writeAll(toAbsoluteOffset: 0, [UInt8](repeating: 0, count: offset)) }
    }
}
