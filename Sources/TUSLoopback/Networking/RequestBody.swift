/// A request's body, read as it comes. Belongs to the connection's thread.
final class RequestBody {
    let length: BodyLength
    private let reader: RequestReader
    private var expectsContinue: Bool
    /// How much is left of the body or, if it is chunked, of the chunk.
    private var remaining: Int64 = 0
    private var isFirstChunk = true
    private(set) var isAtEnd = false

    init(of head: RequestHead, from reader: RequestReader) throws(ConnectionFailure) {
        self.reader = reader
        length = try head.bodyLength()
        expectsContinue = head["Expect"]?.lowercased() == "100-continue"
        if case .known(let bytes) = length {
            remaining = bytes
            isAtEnd = bytes == 0
        }
    }

    /// Whether the other end still waits to be told to send the body, so that refusing the request costs nothing.
    var isAwaited: Bool { expectsContinue && !isAtEnd }

    /// The next bytes, at most `limit`; nil at the end.
    ///
    /// - Throws: ``ConnectionFailure/ended`` if the connection ended before the body did.
    func next(upTo limit: Int64 = .max) throws(ConnectionFailure) -> ArraySlice<UInt8>? {
        if expectsContinue {
            expectsContinue = false
            try reader.connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        if remaining == 0, length == .chunked, !isAtEnd { try beginChunk() }
        guard !isAtEnd else { return nil }
        let bytes = try reader.next(upTo: Int(clamping: min(limit, remaining)))
        remaining -= Int64(bytes.count)
        if remaining == 0, length != .chunked { isAtEnd = true }
        return bytes
    }

    /// Reads a chunk's size, and after the last chunk the trailers (RFC 9112, section 7.1).
    private func beginChunk() throws(ConnectionFailure) {
        if !isFirstChunk {
            guard try reader.nextLine().isEmpty else { throw .malformed("A chunk is longer than its size.") }
        }
        isFirstChunk = false
        let line = try reader.nextLine()
        let digits = line.prefix { $0 != ";" }.trimming(" \t")
        guard let size = Int64(digits, radix: 16), size >= 0 else { throw .malformed("A chunk's size is not a number.") }
        remaining = size
        guard size == 0 else { return }
        while try !reader.nextLine().isEmpty {}
        isAtEnd = true
    }
}
