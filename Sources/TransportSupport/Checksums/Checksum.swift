package import TransferCore

/// A checksum algorithm. The cases are in descending order of strength. SHA-1 and MD5 detect transmission errors, but not deliberate changes.
package enum ChecksumAlgorithm: String, CaseIterable, Hashable, Sendable {
    case sha512, sha256, sha1, md5

    /// The length of a checksum in bytes.
    package var byteCount: Int {
        switch self {
        case .sha512: 64
        case .sha256: 32
        case .sha1: 20
        case .md5: 16
        }
    }
}

/// The checksum of a file's content.
package struct Checksum: Hashable, Sendable {
    package let algorithm: ChecksumAlgorithm
    /// The checksum's bytes; their number is the algorithm's `byteCount`.
    package let bytes: [UInt8]

    /// Creates a checksum from bytes; nil if the algorithm's checksums have a different length.
    package init?(_ algorithm: ChecksumAlgorithm, _ bytes: some Collection<UInt8>) {
        guard bytes.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.bytes = Array(bytes)
    }

    init(computed algorithm: ChecksumAlgorithm, _ bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Parses hexadecimal digits; nil if their number does not match the algorithm, or if a character is not a hexadecimal digit.
    package init?(_ algorithm: ChecksumAlgorithm, digits: Substring) {
        let values = digits.utf8.count == 2 * algorithm.byteCount ? digits.compactMap(\.hexDigitValue) : []
        guard values.count == 2 * algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        bytes = stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }

    /// Parses a checksum in the format of receipts: the algorithm, a colon and hexadecimal digits. Nil if the text is not a checksum.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = ChecksumAlgorithm(rawValue: parts[0].lowercased()) else { return nil }
        self.init(algorithm, digits: parts[1])
    }

    /// Parses the checksum that a session expects; nil if the session expects none.
    ///
    /// - Throws: A ``TransferError`` if the expected text is not a checksum.
    package init?(expectedBy options: AttemptOptions) throws(TransferError) {
        guard let text = options.expectedChecksum else { return nil }
        guard let checksum = Checksum(text) else {
            throw TransferError(
                .permanent, .checksumMismatch,
                "\(text.prefix(200).debugDescription) is not a checksum. Write sha256: followed by 64 hexadecimal digits, or use sha512, "
                    + "sha1 or md5.")
        }
        self = checksum
    }

    /// The bytes in lower-case hexadecimal digits.
    package var digits: String {
        let names = Array("0123456789abcdef")
        return String(bytes.flatMap { [names[Int($0 >> 4)], names[Int($0 & 15)]] })
    }

    /// The checksum in the format of receipts: `algorithm:hex`.
    package var text: String { "\(algorithm.rawValue):\(digits)" }
}

extension Checksum: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let checksum = Checksum(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "The text is not a checksum.")
        }
        self = checksum
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
