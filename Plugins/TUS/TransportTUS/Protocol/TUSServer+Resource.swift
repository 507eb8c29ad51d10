import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSServer {
    /// Returns the URL for creating the upload of a file: the address or, with the method `PUT`, the file's name below the address. A creation
    /// URL of the attempt stays unchanged.
    func target(of path: RemotePath) -> String {
        guard options.creationMethod == .put, !hasCreationURL, var components = URLComponents(string: address) else {
            return address
        }
        let folder = components.percentEncodedPath
        components.percentEncodedPath = folder + (folder.hasSuffix("/") ? "" : "/") + path.percentEncoded
        return components.string ?? address
    }

    /// Rejects a file that the server's limits exclude.
    ///
    /// - Parameter size: The size of the file; nil while it is unknown.
    func checkLimits(_ limits: UploadLimits?, of size: Int64?) throws(TransferError) {
        guard let limits, let size else { return }
        try checkSize(size, atMost: limits.maximumSize)
        guard let minimum = limits.minimumSize, size < minimum else { return }
        throw TransferError(
            .unsupported, .rejected, "The server \(origin) accepts files of at least \(minimum) bytes; this file has \(size).")
    }

    /// The error for an offset beyond the bytes that were sent.
    func implausibleOffset(_ offset: Int64, sent: Int64) -> TransferError {
        TransferError(
            .resumeLost, .uploadGone, "The server \(origin) claims to have \(offset) bytes, more than the \(sent) that were sent.")
    }

    /// The error for an upload that the server may have completed.
    func outcomeUnknown(cause: String? = nil) -> TransferError {
        TransferError(
            .permanent, .outcomeUnknown,
            "The server \(origin) may have stored the file: it received all content, but its response was lost, and it no longer has the upload. "
                + "Look for the file there before you retry it, because a retry may store it a second time.", cause: cause)
    }

    /// Requests the checksum of a complete file from its upload resource.
    ///
    /// - Returns: nil if the server reports none.
    func reportedDigest(of url: String) async throws -> Checksum? {
        do {
            let tusResponse = try await sendInAcceptedVersion(.head, at: url) {
                try await $0.send(.head, to: url, headers: ["Want-Repr-Digest": Checksum.wantedDigest])
            }
            return tusResponse.isSuccess ? tusResponse.reportedDigest : nil
        } catch let error as TransferError where error.failureClass == .resumeLost {
            // The upload is complete, so it must not restart.
            return nil
        }
    }
}

extension TUSResponse {
    /// Rejects a success that arrived before the whole content of the request was sent.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the content.
    ///   - failureClass: The class of the error.
    func checkSent(_ count: Int64, _ failureClass: FailureClass) throws(TransferError) {
        let accepted = response.sent.accepted
        guard accepted == count else { throw endpointResponse.earlySuccess(after: accepted, of: count, failureClass) }
    }

    /// The checksum of the whole file according to the server (RFC 9530, "Repr-Digest").
    var reportedDigest: Checksum? { Checksum(["Repr-Digest": response.headers["Repr-Digest"] ?? ""], isWhole: false) }
}
