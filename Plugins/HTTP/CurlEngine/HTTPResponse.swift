/// A server's final answer. Every status is an answer, not an error.
public struct HTTPResponse: Sendable {
    /// The status code, for example 204.
    public var status: Int

    /// The headers of the final answer; those of interim ones (1xx) are left out.
    public var headers: HTTPHeaders

    /// The body's first bytes, at most ``CurlEngine/Configuration/maximumResponseBody``.
    public var body: [UInt8]

    /// Whether the body was longer than ``body``; the connection is then not used again.
    public var isBodyTruncated: Bool

    /// The URL that was asked, as the HTTP client understood it.
    public var effectiveURL: String

    /// How many bytes of the request's body the socket took. Fewer than the body has when the server answered early.
    public var bytesSent: Int64
}
