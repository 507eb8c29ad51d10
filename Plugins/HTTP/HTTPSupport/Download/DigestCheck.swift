import CurlEngine
package import TransferCore
import TransportSupport

/// Verifies the checksum of a download.
package struct DigestCheck: Sendable {
    /// The session's checksum. It takes precedence over the server's checksum.
    private let expected: Checksum?
    private let verification: Verification

    /// - Throws: A ``TransferError`` if the session's checksum is invalid.
    package init(_ options: AttemptOptions) throws(TransferError) {
        verification = options.verification
        expected = try Checksum(expectedBy: options)
    }

    var needsServerChecksum: Bool { verification == .checksum && expected == nil }

    /// The headers that request a checksum from the server; empty if the server's checksum is not needed.
    var requestHeaders: HTTPHeaders { needsServerChecksum ? Checksum.requestHeaders : HTTPHeaders() }

    /// Rejects a file that can't be verified, or whose checksum on the server differs from the session's.
    ///
    /// - Parameter name: The text that names the file and the server in messages.
    func verify(_ remote: RemoteFile, of name: String) throws(TransferError) {
        if needsServerChecksum, remote.digest == nil {
            throw TransferError(
                .unsupported, .unsupported, "The server sends no checksum of \(name), so the download can't be verified.")
        }
        if let expected, let digest = remote.digest, digest.algorithm == expected.algorithm, digest != expected {
            throw TransferError(
                .permanent, .checksumMismatch, "\(name) has the checksum \(digest.text) on the server, but \(expected.text) is expected.")
        }
    }

    /// Returns the checksum that the downloaded file must have; nil to skip the comparison.
    ///
    /// - Throws: ``mismatch(of:)`` if the session requires a checksum, but no response contained one.
    func digest(of remote: RemoteFile?, of name: String) throws(TransferError) -> Checksum? {
        if let expected { return expected }
        if needsServerChecksum, remote?.digest == nil { throw mismatch(of: name) }
        // The server's checksum is used even if it was not requested.
        return verification == .none ? nil : remote?.digest
    }

    func mismatch(of name: String) -> TransferError {
        TransferError(
            .resumeLost, .checksumMismatch,
            "The download of \(name) does not match the \(expected == nil ? "server's" : "expected") checksum, so it can't be used."
        )
    }
}
