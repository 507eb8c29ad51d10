/// A server's final answer. Every status is an answer, not an error.
public struct HTTPResponse: Sendable {
    /// The status code, for example 204.
    public var status: Int

    /// The headers of the final answer; those of interim ones (1xx) are left out.
    public var headers: HTTPHeaders

    /// The body's first bytes, at most ``CurlEngine/Configuration/maximumResponseBody``; empty if an ``HTTPResponseSink`` took it.
    public var body: [UInt8]

    /// Whether the body was longer than ``body``; the connection is then not used again.
    public var isBodyTruncated: Bool

    /// The version of HTTP that the server answered in.
    public var version: ConnectionOptions.HTTPVersion

    /// The URL that was asked, as the HTTP client understood it.
    public var effectiveURL: String

    /// How much of the request's body went out: less than all of it when the server answered early.
    public var sent: SentBytes
}

/// How much of a request's body went out.
public struct SentBytes: Hashable, Sendable {
    /// How many bytes the socket took.
    public var taken: Int64 = 0

    /// How many bytes were read to be sent: the most that the server can have. libcurl forgets what the socket took when it is about to send a
    /// request again.
    public var limit: Int64 = 0
}
