import CurlEngine
import HTTPClient
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What a server answered, and what is needed to judge it.
struct HTTPAnswer {
    let method: String
    let response: HTTPResponse
    /// The origin that was asked first.
    let origin: Origin
    let latency: Duration
    /// What the request carried that is shown to nobody.
    let secrets: [String]
    let sentCredentials: Bool
    /// Whether the server accepted these same credentials before.
    let credentialsWereAccepted: Bool
    /// What the proxy is called that may be the one who answered; nil where there is none.
    let proxyName: String?

    var status: Int { response.status }

    /// What the server answered, for the receipt.
    var kept: ServerAnswer {
        guard !response.repeats(secrets) else {
            return ServerAnswer(status: status, text: "(The server's text is left out, as it repeats a credential or a signature.)")
        }
        return ServerAnswer(
            status: status, mediaType: response.headers["Content-Type"].map { String($0.prefix(200)) },
            text: String(decoding: response.body.prefix(ServerAnswer.maximumBytes), as: UTF8.self),
            isTruncated: response.isBodyTruncated || response.body.count > ServerAnswer.maximumBytes)
    }

    /// A URL that the server or its redirects named, without what may be a signature; nil if it holds another secret.
    func shown(_ url: String?) -> String? {
        let place = url.map { String($0.prefix { $0 != "?" && $0 != "#" }) }
        return place?.repeats(secrets) == true ? nil : place
    }

    /// The error for an answer to an upload that is no success.
    ///
    /// - Parameter isOneTime: Whether the URL was made for this one file.
    func uploadFailure(isOneTime: Bool) -> TransferError {
        switch status {
        case 401 where isOneTime && !sentCredentials:
            error(.permanent, .forbidden, "wants credentials at the URL that was given for this file")
        case 404, 405, 410, 501: misplaced(isOneTime: isOneTime)
        case 409: error(.permanent, .rejected, "can't put a file there; is its folder missing, or something in its place?")
        case 413: error(.permanent, .tooLarge, "does not take a file of this size")
        case 507: error(.remoteFull, .remoteFull, "has no space left for this file")
        default: failure("upload")
        }
    }

    /// The error for a success that was told before the server can have had the whole request: what it took, if anything, is not the file.
    ///
    /// - Parameter failureClass: What is to be done.
    func earlySuccess(after taken: Int64, of length: Int64, _ failureClass: FailureClass) -> TransferError {
        error(
            failureClass, .badAnswer,
            "says that it is done after \(taken) of \(length) bytes, so it can't have this file; "
                + "check that what answers at this address stores what it is sent")
    }

    /// The error for an address that takes no files. Each file has one of its own, so it says nothing of the server, and asking again helps nobody;
    /// but another endpoint may know the file.
    private func misplaced(isOneTime: Bool) -> TransferError {
        if isOneTime { return error(.permanent, .rejected, "takes no file at the URL that was given for it") }
        let (what, other) = method == "POST" ? ("forms", "https+put for PUT") : ("a PUT", "https+form for forms")
        return status == 404 || status == 410
            ? error(
                .unsupported, .notThisProtocol,
                "has nothing that takes \(what) at the address for this file; check the path in the account's address, and the folders in it"
            )
            : error(
                .unsupported, .notThisProtocol,
                "does not take \(what) at the address for this file; check the account's address, which begins with \(other)")
    }

    /// The error for an answer to a request for a file that is not the file.
    func downloadFailure(of path: RemotePath) -> TransferError {
        switch status {
        case 200..<300: error(.protocolViolation, .badAnswer, "answered something else than the file \(path)")
        case 404, 410: error(.permanent, .noSuchRemoteFile, "has no file \(path)")
        case 405, 501: error(.unsupported, .unsupported, "does not give files")
        default: failure("download")
        }
    }

    /// The error for a refusal that means the same for whatever was asked.
    func failure(_ request: String) -> TransferError {
        switch status {
        case 304:
            error(
                .permanent, .rejected,
                "says that nothing has changed, which is an answer to a condition; remove headers such as If-None-Match from the account and the session"
            )
        case 300..<400: redirected(request)
        case 400 where response.refusesClientCertificate:
            error(.credentials, .credentialsRejected, "does not take the client certificate, or wants one")
        case 400 where response.wantsTLS:
            error(.unsupported, .notThisProtocol, "wants TLS on this port; write https in place of http in the address")
        case 401: credentialsRefused
        // Without credentials, or with ones that were right before, it is this file that is not allowed.
        case 403 where !sentCredentials || credentialsWereAccepted:
            error(.permanent, .forbidden, "does not allow this \(request); if its URL is signed, it may have expired")
        case 403: credentialsRefused
        case 407:
            error(
                .credentials, .credentialsRejected, by: proxyName.map { "The proxy \($0)" },
                "wants credentials for requests to \(origin), or other ones")
        case 417: error(.transient, .rejected, "does not put up with being asked before the file is sent")
        case 408, 423, 425, 429: error(.transient, .serverError, "is busy")
        case 502...504: error(.transient, .serverUnavailable, "is not available now")
        case 500...: error(.transient, .serverError, "failed")
        default: error(.permanent, .rejected, "refused the \(request)")
        }
    }

    private func redirected(_ request: String) -> TransferError {
        guard let target = response.location.flatMap(Origin.init) else {
            return error(.permanent, .rejected, "redirects the \(request), and does not say where to; ask for another address")
        }
        // The path may be a capability.
        let place = target == origin ? "another path there" : "\(target)"
        // Only 307 and 308 keep the method (RFC 9110, section 15.4).
        guard method == "GET" || status == 307 || status == 308 else {
            return error(
                .permanent, .rejected,
                "redirects the \(request) to \(place), and by the status \(status) the file is not sent there. If the file has arrived all the "
                    + "same, as where a form shows a page next, write the setting acceptedStatuses=\(status); otherwise write the new address "
                    + "in the account")
        }
        if origin.scheme == "https", target.scheme == "http" {
            return error(
                .permanent, .rejected,
                "redirects the \(request) to \(place), where nothing is encrypted, so it is not followed; ask for an address with https")
        }
        return error(
            .permanent, .rejected,
            "redirects the \(request) to \(place), where nothing is sent unasked; write that in the account's address, or list it in its "
                + "setting origins")
    }

    private var credentialsRefused: TransferError {
        error(
            .credentials, .credentialsRejected,
            sentCredentials ? "does not accept the credentials" : "wants credentials, and none were sent to it")
    }

    /// - Parameter subject: Who it is that answered, if not the server.
    private func error(
        _ failureClass: FailureClass, _ code: TransferError.Code, by subject: String? = nil, _ what: String
    ) -> TransferError {
        let words =
            response.repeats(secrets)
            ? ", in words that are left out, as they repeat a credential or a signature"
            : response.words(without: secrets).map { ": \($0)" } ?? ""
        let wait = status == 429 || status == 503 ? response.headers.retryAfter(now: time(nil)) : nil
        return TransferError(
            failureClass, code, "\(subject ?? "The server \(origin)") \(what).",
            cause: "\(method) was answered with \(status)\(words)", retryAfter: wait)
    }
}
