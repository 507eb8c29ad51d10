import Crypto

/// An algorithm that both ends can compute a checksum with.
package enum ChecksumAlgorithm: String, Hashable, Sendable {
    case sha256
    /// Finds faults of the way, and not what somebody did who wants to deceive.
    case md5
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
        let count =
            switch algorithm {
            case .sha256: 2 * SHA256.byteCount
            case .md5: 2 * Insecure.MD5.byteCount
            }
        guard digits.utf8.count == count, digits.allSatisfy(\.isHexDigit) else { return nil }
        self.algorithm = algorithm
        self.digits = digits
    }

    /// As receipts have it: `algorithm:hex`.
    var text: String { "\(algorithm.rawValue):\(digits)" }
}

/// A checksum in the making.
struct ContentHash: Sendable {
    private enum State {
        case sha256(SHA256)
        case md5(Insecure.MD5)
    }

    private var state: State

    init(_ algorithm: ChecksumAlgorithm) {
        switch algorithm {
        case .sha256: state = .sha256(SHA256())
        case .md5: state = .md5(Insecure.MD5())
        }
    }

    mutating func update(_ bytes: [UInt8]) {
        switch state {
        case .sha256(var hash):
            hash.update(data: bytes)
            state = .sha256(hash)
        case .md5(var hash):
            hash.update(data: bytes)
            state = .md5(hash)
        }
    }

    /// The checksum of all bytes so far.
    var digest: ContentDigest {
        switch state {
        case .sha256(let hash): ContentDigest(.sha256, hash.finalize())
        case .md5(let hash): ContentDigest(.md5, hash.finalize())
        }
    }
}
