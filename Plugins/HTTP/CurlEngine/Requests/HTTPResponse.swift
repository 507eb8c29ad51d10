/// A server's final response. No status is treated as an error.
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

    /// The requested URL, as normalized by libcurl.
    public var effectiveURL: String

    /// The amount of the request's body that was sent: less than all of it if the server responded early.
    public var sent: SentBytes
}

/// The amount of a request's body that was sent.
public struct SentBytes: Hashable, Sendable {
    /// The number of bytes that the socket accepted.
    public var taken: Int64 = 0

    /// The number of bytes that were read for sending: the server can't have more. libcurl resets its own count, of bytes that the socket
    /// accepted, when it sends a request again.
    public var limit: Int64 = 0
}
