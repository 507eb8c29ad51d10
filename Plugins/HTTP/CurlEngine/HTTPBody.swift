public import TransportSupport

/// What a request carries.
public enum HTTPBody: Sendable {
    /// Nothing, and no `Content-Length` either.
    case none
    /// Bytes in memory; none of them is an empty body with `Content-Length: 0`.
    case bytes([UInt8])
    /// A part of an open file, sent from the page cache where it is there. The file must not end before the part does.
    case file(FileReader, offset: Int64, length: Int64)

    /// How many bytes there are, or nil where there is no body.
    var length: Int64? {
        switch self {
        case .none: nil
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, offset: _, let length): length
        }
    }
}
