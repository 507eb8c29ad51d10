public import TransferCore

/// How it is made sure that what arrived is what was sent.
enum ContentCheck: Hashable, Sendable {
    /// By the server's word on how much it has.
    case none
    /// Each request carries the checksum of what it brings (extension *checksum*).
    case eachRequest(ChecksumAlgorithm)

    /// How many bytes a request brings whose checksum has to be known before it is sent: they are read twice, the second time from memory.
    static let chunkSize: Int64 = 8 << 20

    /// Finds what serves a session's wish at a server.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` if there is nothing: no claim is made that nobody checked.
    static func choose(for wish: Verification, _ features: ServerFeatures, at origin: Origin) throws(TransferError) -> ContentCheck {
        guard wish == .checksum else { return .none }
        guard features.offers(.checksum), let algorithm = ChecksumAlgorithm.best(of: features.checksumAlgorithms) else {
            throw TransferError(
                .unsupported, .unsupported,
                "The server \(origin) does not say that it compares checksums, so what arrives there can't be verified; ask for less, or use another server."
            )
        }
        return .eachRequest(algorithm)
    }
}

extension TransferError.Code {
    /// What arrived is not what was sent.
    public static let checksumMismatch = Self(rawValue: "checksumMismatch")
}
