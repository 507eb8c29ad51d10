import CurlEngine
package import TransferCore

/// Which checksum a download has to have.
package struct DigestCheck: Sendable {
    /// The one that the session gives; it goes before the server's.
    private let expected: ContentDigest?
    private let verification: Verification

    /// - Throws: A ``TransferError`` if the session's is not one.
    package init(_ options: AttemptOptions) throws(TransferError) {
        verification = options.verification
        guard let text = options.expectedChecksum else {
            expected = nil
            return
        }
        guard let digest = ContentDigest(text) else {
            throw TransferError(
                .permanent, .checksumMismatch,
                "The checksum that is expected, \(text.prefix(200).debugDescription), is none; write it as sha256: and 64 hexadecimal digits, or "
                    + "so with sha512, sha1 or md5.")
        }
        expected = digest
    }

    /// Whether the server has to tell one.
    var needsServer: Bool { verification == .checksum && expected == nil }

    /// Asks the server for one, if that is needed.
    var request: HTTPHeaders { needsServer ? ContentDigest.request : HTTPHeaders() }

    /// Refuses a file that can't be verified, or is another one by the server's own word.
    func verify(_ remote: RemoteFile, of name: String) throws(TransferError) {
        if needsServer, remote.digest == nil {
            throw TransferError(
                .unsupported, .unsupported, "The server tells no checksum of \(name), so what it sends can't be verified.")
        }
        if let expected, let digest = remote.digest, digest.algorithm == expected.algorithm, digest != expected {
            throw TransferError(
                .permanent, .checksumMismatch, "\(name) has the checksum \(digest.text) there, and \(expected.text) is expected.")
        }
    }

    /// The one that what arrived has to have; nil if none is compared.
    func digest(of remote: RemoteFile?, of name: String) throws(TransferError) -> ContentDigest? {
        if let expected { return expected }
        if needsServer, remote?.digest == nil { throw mismatch(of: name) }
        // What a server tells unasked is compared, too, if anything is.
        return verification == .none ? nil : remote?.digest
    }

    /// The error for what arrived with another one.
    func mismatch(of name: String) -> TransferError {
        TransferError(
            .resumeLost, .checksumMismatch,
            "What arrived of \(name) has another checksum than \(expected == nil ? "the server told" : "is expected"), so it can't be used."
        )
    }
}
