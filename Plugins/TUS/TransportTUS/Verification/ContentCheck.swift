import TransferCore

/// How the server's content is compared with the sent content.
enum ContentCheck: Hashable, Sendable {
    /// By the server's offset only.
    case none
    /// Each request has the checksum of its content (extension *checksum*).
    case eachRequest(ChecksumAlgorithm)
    /// Each request has the checksum of its content as a trailer (extension *checksum-trailer*), so the content is read only once.
    case trailer(ChecksumAlgorithm)
    /// The whole file is read back from the server and compared.
    case readingBack

    /// The size of requests with a checksum before the content. They are read twice, the second time from memory.
    static let chunkSize: Int64 = 8 << 20

    /// Selects the check for a session's verification at a server.
    ///
    /// - Parameter canSendTrailers: Whether connections to the server can carry trailers, which only HTTP/1.1 can.
    init(_ wish: Verification, _ features: ServerFeatures, canSendTrailers: Bool) {
        guard wish == .checksum else {
            self = .none
            return
        }
        guard let algorithm = ChecksumAlgorithm.best(of: features.checksumAlgorithms) else {
            self = .readingBack
            return
        }
        if features.offers(.checksumTrailer), canSendTrailers {
            self = .trailer(algorithm)
        } else {
            self = features.offers(.checksum) ? .eachRequest(algorithm) : .readingBack
        }
    }

    /// Whether the server compares the content of each request.
    var comparesRequests: Bool {
        switch self {
        case .eachRequest, .trailer: true
        case .none, .readingBack: false
        }
    }

    var sendsTrailers: Bool {
        if case .trailer = self { true } else { false }
    }

    /// The maximum number of bytes of one request.
    var chunkSize: Int64? {
        if case .eachRequest = self { Self.chunkSize } else { nil }
    }
}
