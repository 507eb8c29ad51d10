import Crypto
import TransferCore

/// An algorithm of checksums. The last two find faults of the way, and not what somebody did who wants to deceive.
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
    /// In lower-case hexadecimal digits.
    package var digits: String

    init(_ algorithm: ChecksumAlgorithm, _ bytes: some Sequence<UInt8>) {
        self.algorithm = algorithm
        let names = Array("0123456789abcdef")
        digits = String(bytes.flatMap { [names[Int($0 >> 4)], names[Int($0 & 15)]] })
    }

    /// Reads what a checksum program prints: the digits, and maybe more behind a space.
    ///
    /// - Returns: Nil if that is no checksum of this algorithm.
    init?(_ algorithm: ChecksumAlgorithm, line: Substring) {
        let digits = line.prefix { $0 != " " }.lowercased()
        guard digits.utf8.count == algorithm.digits, digits.allSatisfy(\.isHexDigit) else { return nil }
        self.algorithm = algorithm
        self.digits = digits
    }

    /// What the session says that a download must have; nil if it says nothing.
    ///
    /// - Throws: A `TransferError` if that is no checksum.
    init?(expectedBy options: AttemptOptions) throws(TransferError) {
        guard let text = options.expectedChecksum else { return nil }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = ChecksumAlgorithm(rawValue: parts[0].lowercased()),
            let digest = ContentDigest(algorithm, line: parts[1]), digest.digits.utf8.count == parts[1].utf8.count
        else {
            throw TransferError(
                .permanent, .checksumMismatch,
                "The checksum that is expected, \(text.prefix(200).debugDescription), is none; write it as sha256: and 64 hexadecimal digits, or "
                    + "so with sha512, sha1 or md5.")
        }
        self = digest
    }

    /// As receipts have it: `algorithm:hex`.
    var text: String { "\(algorithm.rawValue):\(digits)" }
}

/// A checksum in the making.
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
