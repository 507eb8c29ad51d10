/// Passes the bytes of an ``HTTPBodyStream`` to libcurl. Confined to the loop's thread.
final class StreamBody {
    /// Whether bytes can be read now, and how many.
    enum Availability {
        case bytes(Int)
        /// No bytes are available yet. The stream wakes the loop when bytes arrive or the body ends.
        case later
        case end
        case failed(any Error)
    }

    private let stream: HTTPBodyStream
    private var pieces: [[UInt8]] = []
    /// The index of the first piece with unread bytes.
    private var pieceIndex = 0
    /// The position of the first unread byte in that piece.
    private var position = 0

    init(_ stream: HTTPBodyStream) {
        self.stream = stream
    }

    /// Returns the number of available bytes without waiting.
    func availability() -> Availability {
        if pieceIndex < pieces.count { return .bytes(pieces[pieceIndex].count - position) }
        switch stream.take() {
        case .pieces(let more):
            pieces = more
            pieceIndex = 0
            return .bytes(more[0].count)
        case .later: return .later
        case .end: return .end
        case .failed(let error): return .failed(error)
        }
    }

    /// Fills a buffer. The buffer's size must not exceed the number of bytes that ``availability()`` returned.
    func read(into buffer: UnsafeMutableRawBufferPointer) {
        unsafe pieces[pieceIndex].withUnsafeBytes { bytes in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<position + buffer.count]))
        }
        position += buffer.count
        guard position == pieces[pieceIndex].count else { return }
        // Frees the piece, which has been copied completely.
        pieces[pieceIndex] = []
        pieceIndex += 1
        position = 0
    }
}
