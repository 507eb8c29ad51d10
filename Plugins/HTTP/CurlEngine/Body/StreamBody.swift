/// Passes the bytes of a stream to libcurl. Confined to the loop's thread.
final class StreamBody {
    /// How many bytes can be read now.
    enum Availability {
        case bytes(Int)
        /// None; the loop is woken when there are more.
        case later
        case end
        case failed(any Error)
    }

    private let stream: HTTPBodyStream
    private var pieces: [[UInt8]] = []
    private var piece = 0
    private var position = 0

    init(_ stream: HTTPBodyStream) {
        self.stream = stream
    }

    /// Looks for bytes without waiting.
    func availability() -> Availability {
        if piece < pieces.count { return .bytes(pieces[piece].count - position) }
        switch stream.take() {
        case .pieces(let more):
            pieces = more
            piece = 0
            return .bytes(more[0].count)
        case .later: return .later
        case .end: return .end
        case .failed(let error): return .failed(error)
        }
    }

    /// Fills a buffer that is not larger than ``availability()`` returned.
    func read(into buffer: UnsafeMutableRawBufferPointer) {
        unsafe pieces[piece].withUnsafeBytes { bytes in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<position + buffer.count]))
        }
        position += buffer.count
        guard position == pieces[piece].count else { return }
        // Frees the sent bytes.
        pieces[piece] = []
        piece += 1
        position = 0
    }
}
