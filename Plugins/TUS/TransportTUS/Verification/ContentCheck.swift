import Foundation
import TransferCore
import TransportSupport

/// A method of verifying that the server received the content.
enum ContentCheck: Hashable, Sendable {
    /// The transport checks only the server's offset.
    case none
    /// Each request sends the checksum of its content in a header (extension *checksum*).
    case eachRequest(ChecksumAlgorithm)
    /// Each request sends the checksum of its content as a trailer (extension *checksum-trailer*), so the content is read only once.
    case trailer(ChecksumAlgorithm)
    /// The transport reads the whole file back from the server and compares it.
    case readingBack

    /// The default maximum size, in bytes, of a request with the checksum in a header. The content of such a request is read twice. With this
    /// size, the second read is from the page cache.
    static let defaultChunkSize: Int64 = 8 << 20

    /// Selects the check that implements a session's verification at a server.
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

    /// Whether the server verifies a checksum of each request's content.
    var verifiesEachRequest: Bool {
        switch self {
        case .eachRequest, .trailer: true
        case .none, .readingBack: false
        }
    }

    var sendsTrailers: Bool {
        if case .trailer = self { true } else { false }
    }

    /// The default for the maximum number of bytes of one request; nil for no limit.
    var chunkSize: Int64? {
        if case .eachRequest = self { Self.defaultChunkSize } else { nil }
    }
}

extension ChecksumAlgorithm {
    /// Returns the best of a server's algorithms that this transport supports (tus 1.0.0, "Checksum"); nil if the transport supports none.
    static func best(of names: [String]) -> ChecksumAlgorithm? {
        let names = Set(names.map { $0.lowercased() })
        return [.sha256, .sha1, .md5].first { names.contains($0.rawValue) }
    }
}

extension RunningChecksum {
    /// The value of `Upload-Checksum` (tus 1.0.0).
    var header: String { "\(algorithm.rawValue) \(Data(digest).base64EncodedString())" }
}
