/// Why a request has no answer.
public struct CurlEngineError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened, for a program. The list is open.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The name.
        public let rawValue: String

        /// Makes a kind of a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The request can't be sent as it is: its URL or a header makes no sense. Nothing was sent.
        public static let invalidRequest = Kind(rawValue: "invalidRequest")
        /// The host's name, or the proxy's, can't be resolved.
        public static let hostNotFound = Kind(rawValue: "hostNotFound")
        /// No connection was made: refused, or no route.
        public static let refused = Kind(rawValue: "refused")
        /// The connection was not made in time.
        public static let timedOut = Kind(rawValue: "timedOut")
        /// The server's certificate is not to be trusted.
        public static let tlsNotTrusted = Kind(rawValue: "tlsNotTrusted")
        /// No TLS connection could be agreed on.
        public static let tlsFailed = Kind(rawValue: "tlsFailed")
        /// The file of trusted certificates can't be read.
        public static let certificateFileUnusable = Kind(rawValue: "certificateFileUnusable")
        /// The certificate that shows who we are, or its key, can't be used, or the server wants one and has none or another.
        public static let clientCertificateUnusable = Kind(rawValue: "clientCertificateUnusable")
        /// The proxy does not let us through to the server.
        public static let proxyRefused = Kind(rawValue: "proxyRefused")
        /// The connection broke before the answer was complete.
        public static let connectionLost = Kind(rawValue: "connectionLost")
        /// A reused connection broke after the request went out and before any of the answer came in: the server may or may not have acted
        /// on it.
        public static let outcomeUnknown = Kind(rawValue: "outcomeUnknown")
        /// The server does not put up with the question whether a body is welcome (417, RFC 9110, section 15.5.18); it acted on nothing.
        public static let expectationRefused = Kind(rawValue: "expectationRefused")
        /// What came back is not HTTP, or has too large a header section.
        public static let badAnswer = Kind(rawValue: "badAnswer")
        /// The request of an ``HTTPBodyStream`` has ended, so that nothing more can be written.
        public static let requestEnded = Kind(rawValue: "requestEnded")
        /// The engine was shut down.
        public static let shutDown = Kind(rawValue: "shutDown")
        /// This machine has no memory, threads or descriptors left.
        public static let outOfResources = Kind(rawValue: "outOfResources")
        /// Anything else; the cause says what.
        public static let other = Kind(rawValue: "other")
    }

    /// What happened, for a program.
    public var kind: Kind

    /// What happened, for a person: a sentence without secrets.
    public var message: String

    /// libcurl's own words, if it had any.
    public var cause: String?

    /// How much of the request's body went out before.
    public var sent: SentBytes

    /// What a proxy answered that was to let the connection through, if it did not: 407 where it wants credentials (RFC 9110, section 15.5.8).
    public internal(set) var proxyStatus: Int?

    /// Whether the server, or a proxy before it, took no other connection after the one broke that the request was sent over. With the kind
    /// ``Kind/outcomeUnknown`` only; false if that remains unknown.
    public internal(set) var wasServerGone = false

    init(_ kind: Kind, _ message: String, cause: String? = nil, sent: SentBytes = SentBytes()) {
        self.kind = kind
        self.message = message
        self.cause = cause
        self.sent = sent
    }

    /// The message, followed by the cause in parentheses.
    public var description: String {
        cause.map { "\(message) (\($0))" } ?? message
    }
}
