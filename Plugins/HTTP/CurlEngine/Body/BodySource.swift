/// The source of a request body's bytes. Used only on the thread of ``CurlLoop``.
enum BodySource {
    case none
    case bytes([UInt8], position: Int)
    case file(FileBody)
    /// `remaining` is the number of unread bytes; nil if the length is unknown.
    case stream(StreamBody, remaining: Int64?)
    /// The sources that have unread bytes, in order.
    case sequence([BodySource])

    /// Returns the number of bytes that can be read now, at most `limit`, or the reason why none can be read.
    func availability(upTo limit: Int) -> StreamBody.Availability {
        switch self {
        case .none: return .end
        case .bytes(let bytes, let position): return position < bytes.count ? .bytes(min(limit, bytes.count - position)) : .end
        // The next read may still return `.later`, because only a read shows whether the bytes are in the page cache.
        case .file(let body): return body.remaining > 0 ? .bytes(Int(min(Int64(limit), body.remaining))) : .end
        case .stream(let body, let remaining):
            if remaining == 0 { return .end }
            switch body.availability() {
            case .bytes(let count): return .bytes(Int(min(Int64(min(limit, count)), remaining ?? .max)))
            case .end where remaining != nil:
                return .failed(CurlEngineError(.invalidRequest, "The body of a request ended before its declared length."))
            case let other: return other
            }
        case .sequence(let sources):
            return sources.first?.availability(upTo: limit) ?? .end
        }
    }

    /// Reads bytes into a buffer, which must not be larger than the number of bytes that ``availability(upTo:)`` returned. A read of a file,
    /// also within a sequence, may fill only the start of the buffer, return ``FileBody/Read/later``, or fail. Bytes and streams always fill the
    /// buffer.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> FileBody.Read {
        switch self {
        case .none:
            return .bytes(0)
        case .bytes(let bytes, let position):
            let end = position + buffer.count
            unsafe bytes.withUnsafeBytes { unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<end])) }
            self = .bytes(bytes, position: end)
            return .bytes(buffer.count)
        case .file(let body):
            return unsafe body.read(into: buffer)
        case .stream(let body, let remaining):
            unsafe body.read(into: buffer)
            self = .stream(body, remaining: remaining.map { $0 - Int64(buffer.count) })
            return .bytes(buffer.count)
        case .sequence(var sources):
            // Releases the reference from `self` to the array. The next lines can then change the array without copying it.
            self = .none
            let read = unsafe sources[0].read(into: buffer)
            if case .end = sources[0].availability(upTo: 1) { sources.removeFirst() }
            self = .sequence(sources)
            return read
        }
    }

    /// Passes a filled buffer from a reader thread to the ``FileBody`` that requested it. In a sequence, only the first source requests buffers.
    func receive(_ buffer: FileReadBuffer) {
        switch self {
        case .file(let body): body.receive(buffer)
        case .sequence(let sources): sources.first?.receive(buffer)
        case .none, .bytes, .stream: return
        }
    }
}
