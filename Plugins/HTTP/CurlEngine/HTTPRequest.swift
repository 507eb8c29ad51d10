/// One request, as it goes on the wire. Redirects are never followed and nothing is repeated.
public struct HTTPRequest: Sendable {
    /// The method, in upper case, for example `PATCH`.
    public var method: String

    /// An absolute `http` or `https` URL without user name, password or fragment.
    public var url: String

    /// Headers in the order in which they are sent. `Host` and `Content-Length` or `Transfer-Encoding` are added; nothing else is.
    public var headers: HTTPHeaders

    /// What is sent after the headers.
    public var body: HTTPBody

    /// How the connection to the server is made.
    public var connection: ConnectionOptions

    /// Whether to ask the server before sending the body (RFC 9110, section 10.1.1). A silent server is waited for 0.3 s.
    public var expectsContinue: Bool

    /// Whether to open a connection for this request, also where an idle one to the server could be used.
    package var needsNewConnection = false

    /// Makes fields that are sent after the last byte of the body; the body is then sent chunked, and HTTP/1.1 has to be spoken. Which fields come
    /// is for the headers to say (`Trailer`, RFC 9110, section 6.6.2). Called once, on the engine's thread: must not block. Its error ends the
    /// request.
    public var trailers: (@Sendable () throws -> HTTPHeaders)?

    /// Is shown each piece of the file that is the body, in order, when it was read to be sent: to hash it without reading it twice. Called on a
    /// thread of those that read files, so that no other transfer waits for what it computes. It has seen all of the file before the body's end is
    /// sent; of a request that ends early, it may have seen more than was sent.
    public var observeBody: (@Sendable (_ bytes: RawSpan) -> Void)?

    /// A file with the certificates (PEM) to trust instead of the system's: that of ``connection``.
    public var certificateAuthorityFile: String? {
        get { connection.certificateAuthorityFile }
        set { connection.certificateAuthorityFile = newValue }
    }

    /// Makes a request. A `certificateAuthorityFile` goes before that of the connection's options.
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

    /// Whether the request may be sent twice without a different effect (RFC 9110, section 9.2.2).
    ///
    /// `PUT` is not counted: its body has gone.
    var isRepeatable: Bool {
        ["GET", "HEAD", "OPTIONS", "DELETE"].contains(method)
    }

    /// The scheme, host and port of the URL, for people: without what may be secret.
    var origin: String {
        let parts = url.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count > 2 else { return "of a request" }
        let host = parts[2].prefix { $0 != "?" && $0 != "#" }.split(separator: "@").last ?? ""
        return "\(parts[0])//\(host)"
    }
}
