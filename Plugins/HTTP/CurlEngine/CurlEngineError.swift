/// The error of a request that received no complete response.
package struct CurlEngineError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, for programs. The list is not exhaustive.
    package struct Kind: RawRepresentable, Hashable, Sendable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The request is invalid, for example its URL or a header. Nothing was sent, unless the body or a trailer is invalid.
        package static let invalidRequest = Kind(rawValue: "invalidRequest")
        /// The name of the host or of the proxy can't be resolved.
        package static let hostNotFound = Kind(rawValue: "hostNotFound")
        /// The connection could not be established, for example because it was refused, or there is no route to the server.
        package static let refused = Kind(rawValue: "refused")
        package static let timedOut = Kind(rawValue: "timedOut")
        package static let tlsNotTrusted = Kind(rawValue: "tlsNotTrusted")
        package static let tlsFailed = Kind(rawValue: "tlsFailed")
        /// The file of trusted certificates can't be read, or its content is invalid.
        package static let certificateFileUnusable = Kind(rawValue: "certificateFileUnusable")
        /// The client certificate or its key can't be used, or the server rejects the certificate or requires one.
        package static let clientCertificateUnusable = Kind(rawValue: "clientCertificateUnusable")
        /// The proxy refused the connection to the server.
        package static let proxyRefused = Kind(rawValue: "proxyRefused")
        /// The connection broke before the response was complete.
        package static let connectionLost = Kind(rawValue: "connectionLost")
        /// The connection broke after the engine had begun to send the request, and before any byte of the response arrived. The server may
        /// have acted on the request.
        package static let outcomeUnknown = Kind(rawValue: "outcomeUnknown")
        /// The server rejects `Expect: 100-continue` (417, RFC 9110, section 15.5.18). It did not act on the request.
        package static let expectationRefused = Kind(rawValue: "expectationRefused")
        /// The response is not valid HTTP, or its headers are too large.
        package static let invalidResponse = Kind(rawValue: "invalidResponse")
        /// The request of an ``HTTPBodyStream`` has ended, so the stream accepts no more bytes.
        package static let requestEnded = Kind(rawValue: "requestEnded")
        package static let shutDown = Kind(rawValue: "shutDown")
        /// This machine or this process has no memory, threads or file descriptors left.
        package static let outOfResources = Kind(rawValue: "outOfResources")
        /// Any other failure; see the cause.
        package static let other = Kind(rawValue: "other")
    }

    package var kind: Kind

    /// A human-readable message: a sentence without secrets.
    package var message: String

    /// The failure as described by libcurl or the system; nil if neither described it.
    package var cause: String?

    /// How much of the request's body was sent before the error.
    package var sent = SentBytes()

    /// The proxy's status in response to CONNECT, if the proxy refused the connection. The status 407 means that the proxy requires
    /// credentials (RFC 9110, section 15.5.8).
    package internal(set) var proxyStatus: Int?

    /// Whether the server, or a proxy in front of it, refused a new connection after the request's connection broke. Can be true only for
    /// the kind ``Kind/outcomeUnknown``; false if unknown.
    package internal(set) var wasServerGone = false

    /// Whether a new connection was closed or reset before the first line of a response, or before the TLS handshake was complete. A
    /// forwarder, such as a TCP load balancer, accepts connections and closes them like this while its target is stopped.
    ///
    /// Can be true only for the kinds ``Kind/connectionLost`` and ``Kind/tlsFailed``. False if unknown, or if more than 4 MiB of the
    /// request's body were sent, because a forwarder does not buffer that much. With the kind ``Kind/connectionLost``, the server may have
    /// acted on the request.
    package internal(set) var isUnanswered = false

    /// The assumed maximum number of body bytes that this machine and a forwarder can buffer before the server receives the first byte.
    static let maximumBuffered: Int64 = 4 << 20

    /// Whether the server may have closed the reused connection while the connection was idle, before the request arrived. False if more than
    /// 4 MiB of the request's body were sent, or if the server can't be reached any longer.
    package var mayResultFromIdleConnection: Bool {
        kind == .outcomeUnknown && !wasServerGone && sent.accepted <= Self.maximumBuffered
    }

    /// Whether the failure is an error of HTTP/2, such as a stream that the server or a proxy reset. A proxy that can't forward an interim response
    /// over HTTP/2 fails like this each time. Can be true only for the kind ``Kind/connectionLost``.
    package internal(set) var isHTTP2Failure = false

    init(_ kind: Kind, _ message: String, cause: String? = nil) {
        self.kind = kind
        self.message = message
        self.cause = cause
    }

    /// The message, followed by the cause in parentheses.
    package var description: String {
        cause.map { "\(message) (\($0))" } ?? message
    }
}
