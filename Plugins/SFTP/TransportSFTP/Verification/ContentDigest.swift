import Crypto
import TransferCore

/// A checksum algorithm. The last two detect transmission errors, not deliberate changes.
package enum ChecksumAlgorithm: String, Hashable, Sendable {
    case sha256
    case sha512
    case sha1
    case md5

    /// How many hexadecimal digits a checksum has.
    var digits: Int {
        switch self {
        case .sha256: 2 * SHA256.byteCount
        case .sha512: 2 * SHA512.byteCount
        case .sha1: 2 * Insecure.SHA1.byteCount
        case .md5: 2 * Insecure.MD5.byteCount
        }
    }
}

/// The checksum of a file's content.
package struct ContentDigest: Hashable, Sendable {
    package var algorithm: ChecksumAlgorithm
    /// Lower-case hexadecimal digits.
    package var digits: String

    init(_ algorithm: ChecksumAlgorithm, _ bytes: some Sequence<UInt8>) {
        self.algorithm = algorithm
        let names = Array("0123456789abcdef")
        digits = String(bytes.flatMap { [names[Int($0 >> 4)], names[Int($0 & 15)]] })
    }

    /// Parses the output of a checksum program: the digits, and possibly more after a space.
    ///
    /// - Returns: Nil if the line has no checksum of this algorithm.
    init?(_ algorithm: ChecksumAlgorithm, line: Substring) {
        let digits = line.prefix { $0 != " " }.lowercased()
        guard digits.utf8.count == algorithm.digits, digits.allSatisfy(\.isHexDigit) else { return nil }
        self.algorithm = algorithm
        self.digits = digits
    }

    /// Parses the checksum that the session expects; nil without one.
    ///
    /// - Throws: A `TransferError` if it is not a checksum.
    init?(expectedBy options: AttemptOptions) throws(TransferError) {
        guard let text = options.expectedChecksum else { return nil }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = ChecksumAlgorithm(rawValue: parts[0].lowercased()),
            let digest = ContentDigest(algorithm, line: parts[1]), digest.digits.utf8.count == parts[1].utf8.count
        else {
            throw TransferError(
                .permanent, .checksumMismatch,
                "\(text.prefix(200).debugDescription) is not a checksum. Write sha256: followed by 64 hexadecimal digits, or "
                    + "use sha512, sha1 or md5.")
        }
        self = digest
    }

    /// The form of receipts: `algorithm:hex`.
    var text: String { "\(algorithm.rawValue):\(digits)" }
}

/// A checksum of bytes so far.
struct ContentHash: Sendable {
    private enum State {
        case sha256(SHA256)
        case sha512(SHA512)
        case sha1(Insecure.SHA1)
        case md5(Insecure.MD5)
    }

    private var state: State

    init(_ algorithm: ChecksumAlgorithm) {
        switch algorithm {
        case .sha256: state = .sha256(SHA256())
        case .sha512: state = .sha512(SHA512())
        case .sha1: state = .sha1(Insecure.SHA1())
        case .md5: state = .md5(Insecure.MD5())
        }
    }

    mutating func update(_ bytes: [UInt8]) {
        switch state {
        case .sha256(var hash):
            hash.update(data: bytes)
            state = .sha256(hash)
        case .sha512(var hash):
            hash.update(data: bytes)
            state = .sha512(hash)
        case .sha1(var hash):
            hash.update(data: bytes)
            state = .sha1(hash)
        case .md5(var hash):
            hash.update(data: bytes)
            state = .md5(hash)
        }
    }

    /// The checksum of all bytes so far.
    var digest: ContentDigest {
        switch state {
        case .sha256(let hash): ContentDigest(.sha256, hash.finalize())
        case .sha512(let hash): ContentDigest(.sha512, hash.finalize())
        case .sha1(let hash): ContentDigest(.sha1, hash.finalize())
        case .md5(let hash): ContentDigest(.md5, hash.finalize())
        }
    }
}
