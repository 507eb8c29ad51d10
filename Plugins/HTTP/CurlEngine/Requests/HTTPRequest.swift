/// One HTTP request. The engine does not follow redirects or retry requests. However, libcurl repeats a `GET`, `HEAD`, `OPTIONS` or
/// `DELETE` if a reused connection closes before a response arrives.
package struct HTTPRequest: Sendable {
    /// The method, in upper case, for example `PATCH`.
    package var method: String

    /// An absolute `http` or `https` URL without a user name, password or fragment.
    package var url: String

    /// The headers in the order in which they are sent. The engine adds only `Host`, `Accept: */*`, `Content-Length` or
    /// `Transfer-Encoding`, and the header for ``expectsContinue``. To an HTTP proxy, libcurl also sends headers for the proxy.
    package var headers: HTTPHeaders

    /// The content to send after the headers.
    package var body: HTTPBody

    package var connection: ConnectionOptions

    /// Whether to send `Expect: 100-continue` and to wait up to 0.3 s for the response before the body is sent (RFC 9110, section 10.1.1).
    package var expectsContinue: Bool

    /// Whether to open a new connection for this request even if an idle connection is available.
    package var needsNewConnection = false

    /// The maximum number of bytes of the response's body to keep in memory. Only values above
    /// ``CurlEngine/Configuration/maximumResponseBody`` have an effect.
    package var maximumResponseBody = 0

    /// Returns the trailers, the fields that follow the body. With trailers, the body is sent in HTTP chunks. The headers must
    /// announce the fields (`Trailer`, RFC 9110, section 6.6.2). Called once, on the engine's thread. Must not block. An error ends the
    /// request.
    package var trailers: (@Sendable () throws -> HTTPHeaders)?

    /// Observes the bytes of a file while they are sent, for example to hash them without a second read. Called on reader threads, so it does not
    /// delay other transfers. The calls do not overlap, and follow the order of the file. The function receives all bytes before the engine sends
    /// the end of the body. If the request ends early, the function may have received unsent bytes.
    package var observeBody: (@Sendable (_ bytes: RawSpan) -> Void)?

    /// Observes interim responses (1xx), such as 103 or 104, except 100 (Continue) and 101 (Switching Protocols). Called on the engine's
    /// thread, in the order of arrival, when the headers of a response are complete. The engine may still be sending the body. Must not
    /// block.
    ///
    /// libcurl ends a request if the headers of its responses exceed 300 KiB in total. The error is the same as for a broken connection.
    package var observeInterimResponse: (@Sendable (_ head: HTTPResponseHead) -> Void)?

    package init(
        method: String, url: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none,
        expectsContinue: Bool = false, connection: ConnectionOptions = ConnectionOptions(),
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
    }

    /// Whether the body is sent in HTTP chunks, each preceded by its length (RFC 9112, section 7.1).
    var isChunked: Bool {
        !body.isNone && connection.httpVersion == .http1 && (trailers != nil || body.length == nil)
    }

    /// Whether libcurl may repeat the request. Sending such a request twice has the same effect as sending it once (RFC 9110, section
    /// 9.2.2). `PUT` is excluded, because its body has already been consumed.
    var isRepeatable: Bool {
        ["GET", "HEAD", "OPTIONS", "DELETE"].contains(method)
    }

    /// The URL's scheme, host and port, for use in messages. To keep secrets out of messages, the text is "a server" if the URL is invalid or
    /// may contain a user name.
    package var originForMessages: String {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2, parts[1].isEmpty else { return "a server" }
        let host = parts[2].prefix { $0 != "?" && $0 != "#" }
        guard !host.isEmpty, !host.contains("@") else { return "a server" }
        // The colons of an IPv6 address are in brackets. Another colon may precede a password that contains a slash.
        let port = host[(host.lastIndex(of: "]") ?? host.startIndex)...].split(separator: ":", omittingEmptySubsequences: false).dropFirst()
        guard port.count < 2, port.joined().utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return "a server" }
        return "\(parts[0])//\(host)"
    }
}
