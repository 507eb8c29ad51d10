import CurlEngine
package import TransferCore
import TransportSupport

/// The checksum that a download must have.
package struct DigestCheck: Sendable {
    /// The session's checksum, which takes precedence over the server's.
    private let expected: Checksum?
    private let verification: Verification

    /// - Throws: A ``TransferError`` if the session's checksum is invalid.
    package init(_ options: AttemptOptions) throws(TransferError) {
        verification = options.verification
        expected = try Checksum(expectedBy: options)
    }

    /// Whether the server must send a checksum.
    var needsServer: Bool { verification == .checksum && expected == nil }

    /// Requests a checksum from the server, if needed.
    var request: HTTPHeaders { needsServer ? Checksum.request : HTTPHeaders() }

    /// Rejects a file that can't be verified, or whose checksum, according to the server, is another one.
    func verify(_ remote: RemoteFile, of name: String) throws(TransferError) {
        if needsServer, remote.digest == nil {
            throw TransferError(
                .unsupported, .unsupported, "The server sends no checksum of \(name), so the download can't be verified.")
        }
        if let expected, let digest = remote.digest, digest.algorithm == expected.algorithm, digest != expected {
            throw TransferError(
                .permanent, .checksumMismatch, "\(name) has the checksum \(digest.text) on the server, but \(expected.text) is expected.")
        }
    }

    /// The checksum to compare; nil to compare none.
    func digest(of remote: RemoteFile?, of name: String) throws(TransferError) -> Checksum? {
        if let expected { return expected }
        if needsServer, remote?.digest == nil { throw mismatch(of: name) }
        // A checksum that the server sends unasked is compared, too.
        return verification == .none ? nil : remote?.digest
    }

    /// The error for a download with another checksum.
    func mismatch(of name: String) -> TransferError {
        TransferError(
            .resumeLost, .checksumMismatch,
            "The download of \(name) does not match the \(expected == nil ? "server's" : "expected") checksum, so it can't be used."
        )
    }
}
