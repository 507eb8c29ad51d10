/// A server's final response. No status is an error here.
public struct HTTPResponse: Sendable {
    /// The status code, for example 204.
    public var status: Int

    /// The headers of the final response, without those of interim responses (1xx).
    public var headers: HTTPHeaders

    /// The body's first bytes, at most ``CurlEngine/Configuration/maximumResponseBody``; empty if an ``HTTPResponseSink`` took it.
    public var body: [UInt8]

    /// Whether the body was longer than ``body``; the connection is then not reused.
    public var isBodyTruncated: Bool

    /// The HTTP version of the response.
    public var version: ConnectionOptions.HTTPVersion

    /// The URL that was asked, as libcurl normalized it.
    public var effectiveURL: String

    /// How much of the request's body was sent: less than all if the server responded early.
    public var sent: SentBytes
}

/// How much of a request's body was sent.
public struct SentBytes: Hashable, Sendable {
    /// How many bytes the socket took.
    public var taken: Int64 = 0

    /// How many bytes were read to be sent: the most that the server can have. libcurl resets its count of bytes that the socket took when
    /// it sends a request again.
    public var limit: Int64 = 0
}
