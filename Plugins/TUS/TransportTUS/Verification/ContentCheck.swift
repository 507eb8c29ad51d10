import Foundation
import TransferCore
import TransportSupport

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

    /// Selects the check for a session's verification on a server.
    ///
    /// - Parameter canSendTrailers: Whether connections to the server can carry trailers, which only HTTP/1.1 can.
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

extension ChecksumAlgorithm {
    /// The best of a server's algorithms (tus 1.0.0, "Checksum"); nil if none is known.
    static func best(of names: [String]) -> ChecksumAlgorithm? {
        let names = Set(names.map { $0.lowercased() })
        return [.sha256, .sha1, .md5].first { names.contains($0.rawValue) }
    }
}

extension RunningChecksum {
    /// The value of `Upload-Checksum` (tus 1.0.0).
    var header: String { "\(algorithm.rawValue) \(Data(digest).base64EncodedString())" }
}
