public import TransportSupport

/// What a request carries.
public enum HTTPBody: Sendable {
    /// Nothing, and no `Content-Length` either.
    case none
    /// Bytes in memory; none of them is an empty body with `Content-Length: 0`.
    case bytes([UInt8])
    /// A part of an open file, sent from the page cache where it is there. The file must not end before the part does.
    case file(FileReader, offset: Int64, length: Int64)
    /// Bytes that come while they are sent. Without a length, HTTP/1.1 sends them chunked (RFC 9112, section 7.1); with one, the stream must not
    /// end before.
    case stream(HTTPBodyStream, length: Int64? = nil)
    /// Several bodies as one, each behind the one before; none of them a stream.
    case sequence([HTTPBody])

    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    /// How many bytes there are, or nil where there is no body or nobody knows.
    package var length: Int64? {
        switch self {
        case .none: nil
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, offset: _, let length): length
        case .stream(_, let length): length
        case .sequence(let parts): parts.reduce(0) { sum, part in sum.flatMap { sum in part.length.map { sum + $0 } } }
        }
    }
}
