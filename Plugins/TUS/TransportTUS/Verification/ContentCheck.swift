import Foundation
import TransferCore
import TransportSupport

/// The method of verifying that the server has the sent content.
enum ContentCheck: Hashable, Sendable {
    /// The transport checks only the server's offset.
    case none
    /// Each request sends the checksum of its content in a header (extension *checksum*).
    case eachRequest(ChecksumAlgorithm)
    /// Each request sends the checksum of its content as a trailer (extension *checksum-trailer*), so the content is read only once.
    case trailer(ChecksumAlgorithm)
    /// The transport reads the whole file back from the server and compares it.
    case readingBack

    /// The default maximum size, in bytes, of a request with the checksum in a header. Its content is read twice, the second time from the page
    /// cache.
    static let chunkSize: Int64 = 8 << 20

    /// Selects the check for a session's verification on a server.
    ///
    /// - Parameter canSendTrailers: Whether the transport can send trailers to the server, which it does only over HTTP/1.1.
    init(_ verification: Verification, _ features: TUSFeatures, canSendTrailers: Bool) {
        guard verification == .checksum else {
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

    /// Whether the server compares the checksum of each request.
    var comparesRequests: Bool {
        switch self {
        case .eachRequest, .trailer: true
        case .none, .readingBack: false
        }
    }

    /// Whether each request has its checksum in a trailer.
    var sendsTrailers: Bool {
        if case .trailer = self { true } else { false }
    }

    /// The default for the maximum number of bytes of one request; nil for no limit.
    var chunkSize: Int64? {
        if case .eachRequest = self { Self.chunkSize } else { nil }
    }
}

extension ChecksumAlgorithm {
    /// Returns the best supported algorithm of a server (tus 1.0.0, "Checksum"); nil if none is supported.
    static func best(of names: [String]) -> ChecksumAlgorithm? {
        let names = Set(names.map { $0.lowercased() })
        return [.sha256, .sha1, .md5].first { names.contains($0.rawValue) }
    }
}

extension RunningChecksum {
    /// The value of `Upload-Checksum` (tus 1.0.0).
    var header: String { "\(algorithm.rawValue) \(Data(digest).base64EncodedString())" }
}
