import TransferCore

/// How it is made sure that what arrived is what was sent.
enum ContentCheck: Hashable, Sendable {
    /// By the server's word on how much it has.
    case none
    /// Each request carries the checksum of what it brings (extension *checksum*).
    case eachRequest(ChecksumAlgorithm)
    /// Each request carries the checksum of what it brings behind it (extension *checksum-trailer*), so that it is read once only.
    case trailer(ChecksumAlgorithm)
    /// All of it is read back from the server and compared.
    case readingBack

    /// How many bytes a request brings whose checksum has to be known before it is sent: they are read twice, the second time from memory.
    static let chunkSize: Int64 = 8 << 20

    /// Finds what serves a session's wish at a server.
    ///
    /// - Parameter canSendTrailers: Whether connections to the server take fields after a body: HTTP/1.1 alone does.
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

    /// Whether the server compares what each request brings.
    var comparesRequests: Bool {
        switch self {
        case .eachRequest, .trailer: true
        case .none, .readingBack: false
        }
    }

    var sendsTrailers: Bool {
        if case .trailer = self { true } else { false }
    }

    /// The most bytes of one request that this allows.
    var chunkSize: Int64? {
        if case .eachRequest = self { Self.chunkSize } else { nil }
    }
}
