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
    /// The server's own words about a refusal; nil when they are a page, or hold something secret.
    let words: String?
    /// What the server answered, for the receipt; nil if it holds something secret.
    let kept: ServerAnswer?
    let sentCredentials: Bool
    /// Whether the server accepted these same credentials before.
    let credentialsWereAccepted: Bool

    var status: Int { response.status }

    /// The error for an answer to an upload that is no success.
    ///
    /// - Parameter isOneTime: Whether the URL was made for this one file.
    func uploadFailure(isOneTime: Bool) -> TransferError {
        switch status {
        case 200..<300: error(.protocolViolation, .badAnswer, "answered before it had the whole file")
        case 401 where isOneTime && !sentCredentials:
            error(.permanent, .forbidden, "wants credentials at the URL that was given for this file")
        case 404, 405, 410, 501:
            isOneTime
                ? error(.permanent, .rejected, "takes no file at the URL that was given for it")
                : error(.unreachable, .notThisProtocol, "takes no files at this address; check the address")
        case 409: error(.permanent, .rejected, "can't put a file there; is its folder missing, or something in its place?")
        case 413: error(.permanent, .tooLarge, "does not take a file of this size")
        case 507: error(.remoteFull, .remoteFull, "has no space left for this file")
        default: failure("upload")
        }
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
        case 300..<400: redirected(request)
        case 400 where response.refusesClientCertificate:
            error(.credentials, .credentialsRejected, "does not take the client certificate, or wants one")
        case 401: credentialsRefused
        // Without credentials, or with ones that were right before, it is this file that is not allowed.
        case 403 where !sentCredentials || credentialsWereAccepted:
            error(.permanent, .forbidden, "does not allow this \(request); if its URL is signed, it may have expired")
        case 403: credentialsRefused
        case 417: error(.transient, .rejected, "does not put up with being asked before the file is sent")
        case 408, 423, 425, 429: error(.transient, .serverError, "is busy")
        case 500...: error(.transient, .serverError, "failed")
        default: error(.permanent, .rejected, "refused the \(request)")
        }
    }

    private func redirected(_ request: String) -> TransferError {
        let target = response.location.flatMap(Origin.init).map { " to \($0)" } ?? ""
        // The path may be a capability. Only 307 and 308 keep the method (RFC 9110, section 15.4).
        let advice =
            method == "GET" || status == 307 || status == 308
            ? "use that address, or list its origin in the setting origins"
            : "and not in a way that sends the file there; if it has arrived all the same, name the status in the setting acceptedStatuses"
        return error(.permanent, .rejected, "redirects the \(request)\(target); \(advice)")
    }

    private var credentialsRefused: TransferError {
        error(
            .credentials, .credentialsRejected,
            sentCredentials ? "does not accept the credentials" : "wants credentials, and none were sent to it")
    }

    private func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ what: String) -> TransferError {
        let cause = "\(method) was answered with \(status)" + (words.map { ": \($0)" } ?? "")
        let wait = status == 429 || status == 503 ? response.headers.retryAfter(now: time(nil)) : nil
        return TransferError(failureClass, code, "The server \(origin) \(what).", cause: cause, retryAfter: wait)
    }
}
