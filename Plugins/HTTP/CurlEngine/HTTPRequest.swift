/// One request, as it goes on the wire. Redirects are never followed and nothing is repeated.
public struct HTTPRequest: Sendable {
    /// The method, in upper case, for example `PATCH`.
    public var method: String

    /// An absolute `http` or `https` URL without user name, password or fragment.
    public var url: String

    /// Headers in the order in which they are sent. `Host` and `Content-Length` are added; nothing else is.
    public var headers: HTTPHeaders

    /// What is sent after the headers.
    public var body: HTTPBody

    /// A file with the certificates (PEM) to trust instead of the system's.
    public var certificateAuthorityFile: String?

    /// Whether to ask the server before sending the body (RFC 9110, section 10.1.1). A silent server is waited for 0.3 s.
    public var expectsContinue: Bool

    /// Makes a request.
    public init(
        method: String, url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none,
        certificateAuthorityFile: String? = nil, expectsContinue: Bool = false
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.certificateAuthorityFile = certificateAuthorityFile
        self.expectsContinue = expectsContinue
    }

    /// Whether the request may be sent twice without a different effect (RFC 9110, section 9.2.2).
    ///
    /// `PUT` is not counted: its body has gone.
    var isRepeatable: Bool {
        ["GET", "HEAD", "OPTIONS", "DELETE"].contains(method)
    }

    /// Refuses what could smuggle a second header or request into the stream.
    func validate() throws(CurlEngineError) {
        guard !method.isEmpty, method.utf8.allSatisfy(isTokenByte) else {
            throw CurlEngineError(.invalidRequest, "The HTTP method is empty or has a character that methods can't have.")
        }
        guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw CurlEngineError(.invalidRequest, "The URL of a request has a space or a control character.")
        }
        for header in headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(isTokenByte) else {
                throw CurlEngineError(
                    .invalidRequest, "The header name \(header.name.debugDescription) is empty or has a character that names can't have.")
            }
            guard !header.value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
                throw CurlEngineError(.invalidRequest, "The value of the header \(header.name) has a line break or a NUL; remove it.")
            }
        }
    }
}

/// RFC 9110, section 5.6.2.
private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
