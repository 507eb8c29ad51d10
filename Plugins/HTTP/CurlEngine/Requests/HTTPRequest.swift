/// One request, as it is sent. Redirects are never followed and nothing is repeated.
public struct HTTPRequest: Sendable {
    /// The method, in upper case, for example `PATCH`.
    public var method: String

    /// An absolute `http` or `https` URL without user name, password or fragment.
    public var url: String

    /// Headers in the order in which they are sent. Only `Host`, and `Content-Length` or `Transfer-Encoding`, are added.
    public var headers: HTTPHeaders

    /// The content to send after the headers.
    public var body: HTTPBody

    /// How the connection to the server is made.
    public var connection: ConnectionOptions

    /// Whether to send `Expect: 100-continue` and wait before sending the body (RFC 9110, section 10.1.1), at most 0.3 s.
    public var expectsContinue: Bool

    /// Whether to open a connection for this request even if an idle one is available.
    package var needsNewConnection = false

    /// Returns the fields that follow the body, which is then sent chunked, over HTTP/1.1. The headers announce them (`Trailer`, RFC 9110,
    /// section 6.6.2). Called once, on the engine's thread; must not block. Its error ends the request.
    public var trailers: (@Sendable () throws -> HTTPHeaders)?

    /// Observes the file that is the body, piece by piece in order, when it was read to be sent: to hash it without reading it twice.
    /// Called on a reader thread, so other transfers do not wait. Has seen the whole file before the body's end is sent; for a request that
    /// ends early, it can have seen more than was sent.
    public var observeBody: (@Sendable (_ bytes: RawSpan) -> Void)?

    /// A file with the certificates (PEM) to trust instead of the system's, of ``connection``.
    public var certificateAuthorityFile: String? {
        get { connection.certificateAuthorityFile }
        set { connection.certificateAuthorityFile = newValue }
    }

    /// Creates a request. A `certificateAuthorityFile` overrides that of the connection's options.
    public init(
        method: String, url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none,
        certificateAuthorityFile: String? = nil, expectsContinue: Bool = false, connection: ConnectionOptions = ConnectionOptions(),
        trailers: (@Sendable () throws -> HTTPHeaders)? = nil, observeBody: (@Sendable (_ bytes: RawSpan) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.connection = connection
        self.expectsContinue = expectsContinue
        self.trailers = trailers
        self.observeBody = observeBody
        if let certificateAuthorityFile { self.certificateAuthorityFile = certificateAuthorityFile }
    }

    /// Whether the body is sent in chunks, each with its length before it (RFC 9112, section 7.1).
    var isChunked: Bool {
        !body.isNone && connection.httpVersion == .http1 && (trailers != nil || body.length == nil)
    }

    /// Whether the request can be sent twice with the same effect (RFC 9110, section 9.2.2).
    ///
    /// `PUT` is not counted: its body was consumed.
    var isRepeatable: Bool {
        ["GET", "HEAD", "OPTIONS", "DELETE"].contains(method)
    }

    /// The scheme, host and port of the URL, without anything secret, for messages.
    var origin: String {
        let parts = url.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count > 2 else { return "of a request" }
        let host = parts[2].prefix { $0 != "?" && $0 != "#" }.split(separator: "@").last ?? ""
        return "\(parts[0])//\(host)"
    }
}
