/// Passes the bytes of an ``HTTPBodyStream`` to libcurl. Used only on the thread of ``CurlLoop``.
final class StreamBody {
    enum Availability {
        case bytes(Int)
        /// No bytes are available yet. The stream wakes the loop when bytes arrive or the body ends.
        case later
        case end
        case failed(any Error)
    }

    private let stream: HTTPBodyStream
    private var arrays: [[UInt8]] = []
    /// The index of the first array with unread bytes.
    private var arrayIndex = 0
    /// The position of the first unread byte in that array.
    private var position = 0

    init(_ stream: HTTPBodyStream) {
        self.stream = stream
    }

    /// Returns the number of unread bytes in the first array that has any, or the reason why there are none. Does not wait.
    func availability() -> Availability {
        if arrayIndex < arrays.count { return .bytes(arrays[arrayIndex].count - position) }
        switch stream.take() {
        case .arrays(let newArrays):
            arrays = newArrays
            arrayIndex = 0
            return .bytes(newArrays[0].count)
        case .later: return .later
        case .end: return .end
        case .failed(let error): return .failed(error)
        }
    }

    /// Fills a buffer. The buffer's size must not exceed the number of bytes that ``availability()`` returned.
    func read(into buffer: UnsafeMutableRawBufferPointer) {
        unsafe arrays[arrayIndex].withUnsafeBytes { bytes in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<position + buffer.count]))
        }
        position += buffer.count
        guard position == arrays[arrayIndex].count else { return }
        // Frees the array, because all its bytes were copied.
        arrays[arrayIndex] = []
        arrayIndex += 1
        position = 0
    }
}
