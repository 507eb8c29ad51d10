package import TransportSupport

/// The body of a request.
package enum HTTPBody: Sendable {
    /// No body, and no `Content-Length`.
    case none
    /// Bytes in memory. An empty array is sent with `Content-Length: 0`.
    case bytes([UInt8])
    /// A range of an open file, sent from the page cache where possible. The file must contain the whole range.
    case file(FileReader, offset: Int64, length: Int64)
    /// Bytes that the app produces while the request is running. Without a length, HTTP/1.1 sends the body in HTTP chunks (RFC 9112,
    /// section 7.1). With a length, the request has exactly that many bytes: it fails if the stream ends earlier, and ignores further
    /// bytes.
    case stream(HTTPBodyStream, length: Int64? = nil)
    /// Several bodies, sent one after the other. None of them may be a stream or ``HTTPBody/none``.
    case sequence([HTTPBody])

    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    var isStream: Bool {
        if case .stream = self { true } else { false }
    }

    /// The number of bytes; nil if there is no body or its length is unknown. Also nil for a sequence that contains such a body.
    package var length: Int64? {
        switch self {
        case .none: nil
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, offset: _, let length): length
        case .stream(_, let length): length
        case .sequence(let bodies): bodies.reduce(0) { sum, body in sum.flatMap { sum in body.length.map { sum + $0 } } }
        }
    }
}
