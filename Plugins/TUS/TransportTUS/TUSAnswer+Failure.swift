import CurlEngine
import Foundation
import HTTPClient
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension TransferError {
    /// Whether the server asks to be left alone for a time: then nothing more is sent to it, not even a question.
    var wantsPeace: Bool { (retryAfter ?? .zero) > .zero }
}

extension TUSAnswer {
    /// The error for an answer that is not what the protocol wants; the class follows the status and the request.
    ///
    /// - Parameter versions: What the server speaks, if it had to be asked separately.
    func failure(versions: String? = nil) -> TransferError {
        switch status {
        case 201 where hasMadeAnother:
            error(.permanent, .badAnswer, "took the content for another upload (201 Created); it ignores X-HTTP-Method-Override")
        case 200..<300: unexpectedSuccess
        case 300..<400: redirected
        case 400 where refusesCertificate: error(.credentials, .credentialsRejected, "does not take the client certificate, or wants one")
        case 401 where request == .delete, 403 where request == .delete:
            leftToExpire(.credentialsRejected, "does not let us remove the upload")
        case 401: credentialsRefused
        case 403: forbidden
        case 407: proxyRefused
        case 404, 410:
            isCreation
                ? error(.unreachable, .notThisProtocol, "has no tus endpoint at this address; check the address")
                : error(.resumeLost, .uploadGone, "no longer has the upload")
        case 405, 501:
            switch request {
            case .create, .options: error(.unreachable, .notThisProtocol, "does not take uploads at this address; check the address")
            case .delete: leftToExpire(.unsupported, "does not remove uploads on our request")
            case .head, .patch, .get: error(.permanent, .rejected, "does not allow \(request.rawValue), which tus needs")
            }
        case 408, 423, 425, 429: error(.transient, .serverError, "is busy")
        case 409 where request == .patch || request == .delete: error(.transient, .serverError, "has the upload at another offset")
        case 409 where isCreation:
            error(
                .permanent, .rejected,
                "refused the upload; it may have a file of that name already, for example from an attempt whose answer was lost")
        case 412: versionRefused(versions)
        case 413 where request == .patch:
            error(
                .permanent, .tooLarge,
                "does not take requests as large as this one, or something in front of it does not; name a smaller size in the setting "
                    + "chunkSize (transferq add: --chunk)")
        case 413: error(.permanent, .tooLarge, "does not take a file of this size")
        case 417: error(.transient, .serverError, "does not want to be asked before content is sent")
        case dialect.checksumMismatch where request == .patch:
            error(.permanent, .checksumMismatch, "says each time that what arrives has another checksum than what was sent")
        case 507: error(.remoteFull, .remoteFull, "has no space left for this upload")
        case 502...504: error(.transient, .serverUnavailable, "is not available now")
        case 500...: error(.transient, .serverError, "failed")
        default: error(.permanent, .rejected, request == .options ? "refused to say what it can do" : "refused the upload")
        }
    }

    /// The error for a version of the protocol that only one side speaks.
    private func versionRefused(_ versions: String?) -> TransferError {
        let spoken = response.headers[dialect.versionsHeader] ?? versions ?? response.headers[dialect.versionHeader]
        let names = (spoken ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        if names.contains(dialect.version) {
            return error(
                .permanent, .rejected,
                "speaks tus \(dialect.version), as this transport does, and still says that the request does not meet its conditions (412 "
                    + "Precondition Failed); look at what is in front of it, such as a proxy, and at headers that set conditions, such as If-Match"
            )
        }
        let what = spoken.map { "speaks tus \($0.prefix(100))" } ?? "does not say which version of tus it speaks"
        return error(.permanent, .unsupportedVersion, "\(what); this transport speaks \(dialect.version)")
    }

    private var isCreation: Bool { request.isCreation }

    /// Asked for an `http` address, a proxy answers as a server does.
    private var proxyRefused: TransferError {
        error(
            .credentials, .credentialsRejected, by: proxyName.map { "The proxy \($0)" },
            "wants credentials for requests to \(origin), or other ones")
    }

    /// For an upload that is not removed, and goes when the server lets it expire: asking again would change nothing.
    private func leftToExpire(_ code: TransferError.Code, _ what: String) -> TransferError { error(.unsupported, code, what) }

    /// A login page, for example: what is behind it may remove the upload later.
    private var somethingInTheWay: TransferError { error(.unreachable, .notThisProtocol, "is not a tus server at present") }

    private var redirected: TransferError {
        if request == .delete { return somethingInTheWay }
        guard isCreation else { return error(.protocolViolation, .badAnswer, "redirected a request for an upload that it has") }
        // Only 307 and 308 keep the method (RFC 9110, section 15.4). The path may be a capability.
        let target = location.flatMap(Origin.init).map { " to \($0)" } ?? ""
        let keepsMethod = status == 307 || status == 308
        return error(
            .unreachable, .notThisProtocol,
            keepsMethod
                ? "redirects uploads\(target); use that address, or list its origin in the setting origins"
                : "redirects uploads\(target) in a way that does not keep the request; use the address that it redirects to")
    }

    private var unexpectedSuccess: TransferError {
        if request == .delete { return somethingInTheWay }
        if !isFromTUSServer, response.headers[dialect.versionHeader] != nil { return versionRefused(nil) }
        if isCreation { return error(.unreachable, .notThisProtocol, "is not a tus server at this address; check the address") }
        if !isFromTUSServer { return error(.protocolViolation, .badAnswer, "answered without saying that it speaks tus") }
        return error(.protocolViolation, .badAnswer, "did not say how much of the upload it has")
    }

    private var credentialsRefused: TransferError {
        if withheldCredentials {
            return error(
                .credentials, .credentialsRejected,
                "leads to another origin, which wants credentials; a redirect carries none. Name that address as the endpoint, or, for "
                    + "uploads that are kept there, list it in the setting origins")
        }
        return error(
            .credentials, .credentialsRejected,
            sentCredentials ? "does not accept the credentials" : "wants credentials, and none are named")
    }

    private var forbidden: TransferError {
        if request == .head { return error(.resumeLost, .uploadGone, "no longer gives access to the upload") }
        // The same credentials were right before, so it is this file that is not wanted.
        if credentialsWereAccepted { return error(.permanent, .rejected, "does not allow this upload") }
        return credentialsRefused
    }

    /// - Parameter subject: Who it is that answered, if not the server.
    func error(
        _ failureClass: FailureClass, _ code: TransferError.Code, by subject: String? = nil, _ what: String
    ) -> TransferError {
        let cause = "\(request.rawValue) was answered with \(status)" + (words.map { ": \($0)" } ?? "")
        let wait = status == 429 || status == 503 ? response.headers.retryAfter(now: time(nil)) : nil
        return TransferError(failureClass, code, "\(subject ?? "The server \(origin)") \(what).", cause: cause, retryAfter: wait)
    }
}
