import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension TransferError {
    /// Whether the server asks its clients to back off for a time (`Retry-After`). The attempt then sends no more requests to the server.
    var asksToBackOff: Bool { (retryAfter ?? .zero) > .zero }
}

extension TUSResponse {
    /// Returns the error for a failed request.
    ///
    /// - Parameter versions: The server's versions, if the response omits them and another request returned them.
    func failure(versions: String? = nil) -> TransferError {
        switch status {
        case 201 where hasCreatedAnotherUpload:
            error(.permanent, .invalidResponse, "created another upload (201) in response to PATCH; it ignores X-HTTP-Method-Override")
        case 200..<300: unexpectedSuccess
        case 300..<400: redirected
        case 400 where refusesCertificate: endpointResponse.certificateRefused
        case 400 where !isFromTUSServer && request != .options && request != .get && response.mayResultFromBrokenConnection:
            error(
                .transient, .rejected,
                "or a proxy in front of it rejected the request as malformed, which happens when a connection breaks during a request")
        case 401 where request == .delete, 403 where request == .delete:
            leftToExpire(.credentialsRejected, "does not let this account remove the upload")
        case 401: credentialsRefused
        case 403: forbidden
        case 404, 410:
            request.targetsEndpoint
                ? error(
                    .unreachable, .notThisProtocol,
                    "has no \(dialect.ietf == nil ? "tus endpoint" : "resource for uploads") at this address; check the address")
                : error(.resumeLost, .uploadGone, "no longer has the upload")
        case 405, 501:
            switch request {
            case .create, .options: error(.unreachable, .notThisProtocol, "does not accept uploads at this address; check the address")
            case .delete: leftToExpire(.unsupported, "does not remove uploads on request")
            case .head, .patch, .get:
                error(
                    .permanent, .rejected,
                    "does not allow \(request.rawValue), which \(dialect.ietf == nil ? "tus" : dialect.name) requires")
            }
        case 409 where request == .patch || request == .delete: error(.transient, .serverError, "has the upload at another offset")
        case 409 where request.targetsEndpoint:
            error(
                .permanent, .rejected,
                "refused the upload; it may already have a file of that name, for example from an attempt whose response was lost")
        case 412: versionRefused(versions)
        case 413 where request == .patch:
            error(
                .permanent, .tooLarge,
                "or a proxy in front of it does not accept requests as large as this one; use a smaller size in the setting chunkSize "
                    + "(transferq upload: --chunk)")
        case 413: error(.permanent, .tooLarge, "does not accept a file of this size")
        case dialect.checksumMismatch where request == .patch:
            error(.permanent, .checksumMismatch, "repeatedly reports that the received content does not match its checksum")
        case 507: error(.remoteFull, .remoteFull, "has no space left for this upload")
        default:
            endpointResponse.commonFailure
                ?? error(.permanent, .rejected, request == .options ? "refused to report its features" : "refused the upload")
        }
    }

    /// The error for a whole file that the server received and then rejected (IETF protocol). The upload can't resume.
    var rejectionOfWholeFile: TransferError {
        error(.permanent, .rejected, "received the whole file, but did not accept it")
    }

    /// Returns the error for a response with another protocol version, or with the status 412.
    ///
    /// - Parameter versions: The server's versions, if the response omits them and another request returned them.
    private func versionRefused(_ versions: String?) -> TransferError {
        let supported = response.headers[dialect.versionsHeader] ?? versions ?? response.headers[dialect.versionHeader]
        let names = (supported ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        if names.contains(dialect.version) {
            return error(
                .permanent, .rejected,
                "supports tus \(dialect.version), but rejects the request with 412 Precondition Failed; check a proxy in front of it, "
                    + "and headers that set conditions, such as If-Match"
            )
        }
        if dialect.ietf != nil { return error(.permanent, .unsupportedVersion, "rejects the \(dialect.name)") }
        let what = supported.map { "supports tus \($0.prefix(100))" } ?? "does not report its tus version"
        return error(.permanent, .unsupportedVersion, "\(what); this transport supports \(dialect.version)")
    }

    /// The error for an upload that stays until it expires because the server does not remove it.
    private func leftToExpire(_ code: TransferError.Code, _ what: String) -> TransferError { error(.unsupported, code, what) }

    /// The error for a `DELETE` to which another service in front of the tus server responded, for example with a login page. A later
    /// request may still remove the upload.
    private var notATUSServerNow: TransferError { error(.unreachable, .notThisProtocol, "is not a \(serverKind) at the moment") }

    /// The kind of server that speaks the protocol.
    private var serverKind: String { dialect.ietf == nil ? "tus server" : "server for resumable uploads" }

    private var target: String { location.flatMap(Origin.init).map { " to \($0)" } ?? "" }

    /// The error for a redirect that the client did not follow.
    private var redirected: TransferError {
        if request == .delete { return notATUSServerNow }
        guard request.targetsEndpoint else {
            return error(.protocolViolation, .invalidResponse, "redirected a request for an existing upload")
        }
        // Only 307 and 308 keep the method (RFC 9110, section 15.4). The message omits the path, which may be secret.
        let keepsMethod = status == 307 || status == 308
        return error(
            .unreachable, .notThisProtocol,
            keepsMethod
                ? "redirects uploads\(target); use that address, or list its origin in the setting origins"
                : "redirects uploads\(target) with a status that may change the method; use the redirect's target as the address")
    }

    private var unexpectedSuccess: TransferError {
        if request == .delete { return notATUSServerNow }
        if !isFromTUSServer, dialect.ietf == nil, response.headers[dialect.versionHeader] != nil { return versionRefused(nil) }
        if request.targetsEndpoint {
            return error(.unreachable, .notThisProtocol, "is not a \(serverKind) at this address; check the address")
        }
        if !isFromTUSServer, dialect.ietf == nil {
            return error(.protocolViolation, .invalidResponse, "sent a response without a tus version")
        }
        return error(.protocolViolation, .invalidResponse, "did not report how much of the upload it has")
    }

    private var credentialsRefused: TransferError {
        if endpointResponse.withheldCredentials {
            return error(
                .credentials, .credentialsRejected,
                "redirects to another origin, which requires credentials, but redirected requests carry none. Use the redirect's target as the "
                    + "address. If only the uploads are kept at that origin, list the origin in the setting origins")
        }
        return error(
            .credentials, .credentialsRejected,
            endpointResponse.sentCredentials ? "does not accept the credentials" : "requires credentials, and the account has none")
    }

    private var forbidden: TransferError {
        if request == .head { return error(.resumeLost, .uploadGone, "no longer gives access to the upload") }
        // The server accepted these credentials before, so it forbids only this upload.
        if endpointResponse.credentialsWereAccepted {
            return error(.permanent, .forbidden, "does not allow this \(request == .get ? "download" : "upload")")
        }
        return credentialsRefused
    }

    /// Returns the error for a download's response that does not contain the file.
    func downloadFailure(of path: RemotePath) -> TransferError {
        switch status {
        case 200..<300: error(.protocolViolation, .invalidResponse, "sent something other than the file \(path)")
        case 300..<400: error(.permanent, .rejected, "redirects the download\(target); list its origin in the setting origins")
        case 404, 410: error(.permanent, .noSuchRemoteFile, "has no file \(path)")
        case 405, 501: error(.unsupported, .unsupported, "does not offer uploads for download")
        default: failure()
        }
    }

    private func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ what: String) -> TransferError {
        endpointResponse.error(failureClass, code, by: "The server \(origin)", what, method: request.rawValue)
    }
}
