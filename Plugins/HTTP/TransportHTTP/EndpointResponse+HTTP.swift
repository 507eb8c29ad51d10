import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension EndpointResponse {
    /// The response in the form that the receipt stores.
    ///
    /// - Parameter limit: The maximum number of bytes of the text.
    func forReceipt(upTo limit: Int = ServerResponse.defaultLimit) -> ServerResponse {
        let mediaType = response.headers["Content-Type"]
        // The redaction precedes the truncation, so that no part of a secret remains.
        let body = String(decoding: response.body, as: UTF8.self)
        guard let text = (response.isBodyTruncated ? body.withoutPartialSecret(secrets) : body).redacted(secrets),
            mediaType?.repeats(secrets) != true
        else {
            return ServerResponse(status: status, text: "(The server's text is omitted, because it repeats a credential or a signature.)")
        }
        return ServerResponse(
            status: status, mediaType: mediaType.map { String($0.prefix(200)) },
            text: response.body.count > limit ? String(decoding: text.utf8.prefix(limit), as: UTF8.self) : text,
            isTruncated: response.isBodyTruncated || response.body.count > limit)
    }

    /// Returns a URL without its query and fragment; nil if the remaining URL contains a secret.
    func shown(_ url: String?) -> String? {
        let shortened = url.map { String($0.prefix { $0 != "?" && $0 != "#" }) }
        return shortened?.repeats(secrets) == true ? nil : shortened
    }

    /// The error for a failed upload.
    ///
    /// - Parameter isGivenURL: Whether the URL of this file comes from the item or the session; false for the endpoint's address.
    func uploadFailure(isGivenURL: Bool) -> TransferError {
        switch status {
        case 401 where isGivenURL && !sentCredentials:
            error(.permanent, .forbidden, "requires credentials at the URL that was given for this file")
        case 404, 405, 410, 501: addressFailure(isGivenURL: isGivenURL)
        case 409:
            error(
                .permanent, .rejected,
                "can't store the file there; check whether its folder exists, and whether something else has the same name")
        case 413: error(.permanent, .tooLarge, "does not accept a file of this size")
        case 507: error(.remoteFull, .remoteFull, "has no space left for this file")
        default: failure("upload")
        }
    }

    /// The error for an address that does not accept files. Retrying does not help, but another endpoint may accept the file, unless the
    /// URL was given for this file.
    private func addressFailure(isGivenURL: Bool) -> TransferError {
        if isGivenURL { return error(.permanent, .rejected, "does not accept a file at the URL that was given for it") }
        let (what, other) =
            method == "POST"
            ? ("a POST", "to send files by PUT, begin it with https+put") : ("PUT", "to send files in forms, begin it with https+form")
        return status == 404 || status == 410
            ? error(
                .unsupported, .notThisProtocol,
                "does not accept \(what) at this file's URL; check the path in the account's address, and whether its folders exist"
            )
            : error(
                .unsupported, .notThisProtocol,
                "does not accept \(what) at this file's URL; check the account's address (\(other))")
    }

    func folderFailure(of path: RemotePath) -> TransferError { error(.permanent, .isFolder, "has a folder \(path), not a file") }

    func downloadFailure(of path: RemotePath) -> TransferError {
        switch status {
        case 200..<300: error(.protocolViolation, .invalidResponse, "sent something other than the file \(path)")
        case 404, 410: error(.permanent, .noSuchRemoteFile, "has no file \(path)")
        case 405, 501: error(.unsupported, .unsupported, "does not offer files for download")
        default: failure("download")
        }
    }

    /// The error for a status that has the same meaning for all kinds of requests.
    ///
    /// - Parameter request: The word for the request in messages: "upload", "download", "listing" or "request".
    func failure(_ request: String) -> TransferError {
        switch status {
        case 304:
            error(
                .permanent, .rejected,
                "responded 304 Not Modified to a conditional request; remove headers such as If-None-Match from the account "
                    + "and the session"
            )
        case 300..<400: redirected(request)
        case 400 where response.refusesClientCertificate: certificateRefused
        case 400 where response.requiresTLS:
            error(.unsupported, .notThisProtocol, "requires TLS on this port; change http to https in the address")
        case 401: credentialsRefused
        // The request had no credentials, or the server accepted the same credentials before, so the server forbids only this file.
        case 403 where !sentCredentials || credentialsWereAccepted:
            error(.permanent, .forbidden, "does not allow this \(request); if its URL is signed, the signature may have expired")
        case 403: credentialsRefused
        default: commonFailure ?? error(.permanent, .rejected, "refused the \(request)")
        }
    }

    /// The error for a redirect that the client did not follow.
    private func redirected(_ request: String) -> TransferError {
        guard let target = response.location.flatMap(Origin.init) else {
            return error(
                .permanent, .rejected, "redirects the \(request) without a valid target; ask the server's operator for another address")
        }
        // The message omits the path, which may be secret.
        let destination = target == origin ? "another path there" : "\(target)"
        // Only 307 and 308 keep the method (RFC 9110, section 15.4).
        guard method == "GET" || status == 307 || status == 308 else {
            return error(
                .permanent, .rejected,
                "redirects the \(request) to \(destination), but a redirect with status \(status) does not resend the file. If the file has "
                    + "arrived, for example because a form then shows a page, add the setting acceptedStatuses=\(status); otherwise write the "
                    + "new address in the account")
        }
        if origin.scheme == "https", target.scheme == "http" {
            return error(
                .permanent, .rejected,
                "redirects the \(request) to \(destination) without encryption, so the redirect is not followed; ask the server's operator for an address with https"
            )
        }
        return error(
            .permanent, .rejected,
            "redirects the \(request) to \(destination), which the account does not trust; write the target in the account's address, or list it in "
                + "the account's setting origins")
    }

    private var credentialsRefused: TransferError {
        error(
            .credentials, .credentialsRejected,
            sentCredentials ? "does not accept the credentials" : "requires credentials, but the account has none for this server")
    }
}
