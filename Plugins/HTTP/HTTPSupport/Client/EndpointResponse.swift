package import CurlEngine
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server's final response, together with the facts about the request that are needed to interpret its status.
package struct EndpointResponse: Sendable {
    package let response: HTTPResponse
    /// The method of the request.
    package let method: String
    /// The origin that sent the response, after redirects.
    package let origin: Origin
    /// The time from the start of the request to the end of the response.
    package let latency: Duration
    /// Values of the request that errors and receipts must not repeat.
    package let secrets: [String]
    /// Whether the request carried credentials, or secrets in headers from the app's hook.
    package let sentCredentials: Bool
    /// Whether the account's credentials and the headers from the app's hook were withheld, because the origin is not trusted, or the request
    /// was redirected to another origin. False if the account has no credentials and the app has no hook.
    package let withheldCredentials: Bool
    /// Whether the server had accepted the same credentials before this request.
    package let credentialsWereAccepted: Bool
    /// The text that follows "The proxy" in error messages; nil if the configuration uses no proxy. The proxy itself may have sent the response.
    package let proxyDescription: String?
    let credentials: [HTTPHeaders.Field]

    package init(
        response: HTTPResponse, method: String, origin: Origin, latency: Duration, secrets: [String], sentCredentials: Bool,
        withheldCredentials: Bool, credentialsWereAccepted: Bool, proxyDescription: String?, credentials: [HTTPHeaders.Field]
    ) {
        self.response = response
        self.method = method
        self.origin = origin
        self.latency = latency
        self.secrets = secrets
        self.sentCredentials = sentCredentials
        self.withheldCredentials = withheldCredentials
        self.credentialsWereAccepted = credentialsWereAccepted
        self.proxyDescription = proxyDescription
        self.credentials = credentials
    }

    package var status: Int { response.status }

    /// The error for a status that means the same in response to all requests; nil for any other status.
    package var commonFailure: TransferError? {
        switch status {
        case 407:
            // For an http URL, the proxy itself sends this response, so the message must name the proxy.
            error(
                .credentials, .credentialsRejected, by: proxyDescription.map { "The proxy \($0)" },
                "requires credentials for requests to \(origin), or rejected the credentials that it received"
                    + (proxyDescription == nil ? "" : ". Check proxyUser and the proxy's password, or the proxy environment variables"))
        case 408: error(.transient, .serverError, "stopped waiting for the request")
        case 423: error(.transient, .serverError, "reports that the file is locked")
        case 425: error(.transient, .serverError, "asks the client to repeat the request later")
        case 429: error(.transient, .serverError, "is busy")
        case 417: error(.transient, .rejected, "rejects \"Expect: 100-continue\"")
        case 502...504: error(.transient, .serverUnavailable, "is currently unavailable")
        case 500...: error(.transient, .serverError, "failed")
        default: nil
        }
    }

    /// The error for a server that rejects the client's certificate, or requires one.
    package var certificateRefused: TransferError {
        error(.credentials, .credentialsRejected, "does not accept the client certificate, or requires one")
    }

    /// The error for a server that reports success before it can have received the whole request.
    ///
    /// - Parameters:
    ///   - accepted: The maximum number of body bytes that the server can have received.
    ///   - length: The length of the request's body in bytes; nil for a stream that has not ended.
    package func earlySuccess(after accepted: Int64, of length: Int64? = nil, _ failureClass: FailureClass) -> TransferError {
        let received = length.map { "\(accepted) of \($0) bytes" } ?? "\(accepted) bytes of a stream that has not ended"
        return error(
            failureClass, .invalidResponse,
            "reports success after \(received), so it can't have the whole file; check that the service at this address stores the files that "
                + "it receives")
    }

    /// Creates an error from this response. For a 429 or 503, the error contains the delay in `Retry-After`.
    ///
    /// - Parameters:
    ///   - subject: The sender of the response; nil for the server.
    ///   - what: The rest of the sentence after the subject, without a full stop, for example `is busy`.
    ///   - method: The method to name as the cause; nil for the request's method.
    package func error(
        _ failureClass: FailureClass, _ code: TransferError.Code, by subject: String? = nil, _ what: String, method: String? = nil
    ) -> TransferError {
        let explanation =
            response.explanation(excluding: secrets).map { ": \($0)" }
            ?? (String(decoding: response.body, as: UTF8.self).repeats(secrets)
                ? " (the server's text is omitted, because it repeats a credential or a signature)" : "")
        let wait = status == 429 || status == 503 ? response.headers.retryAfter(now: time(nil)) : nil
        return TransferError(
            failureClass, code, "\(subject ?? "The server \(origin)") \(what).",
            cause: "\(method ?? self.method) returned \(status)\(explanation)", retryAfter: wait)
    }
}
