/// A server's final response. No status is treated as an error.
public struct HTTPResponse: Sendable {
    /// The status code, for example 204.
    public var status: Int

    /// The headers of the final response, without those of interim responses (1xx).
    public var headers: HTTPHeaders

    /// The first bytes of the body, at most ``CurlEngine/Configuration/maximumResponseBody``. Empty if an ``HTTPResponseSink`` accepted the
    /// body.
    public var body: [UInt8]

    /// Whether the body was longer than ``body``. An HTTP/1.1 connection is then not reused.
    public var isBodyTruncated: Bool

    /// The HTTP version of the response.
    public var version: ConnectionOptions.HTTPVersion

    /// The URL of the request, as normalized by libcurl.
    public var effectiveURL: String

    /// How much of the request's body was sent: less than the whole body if the server responded early.
    public var sent: SentBytes
}

/// How much of a request's body was sent.
public struct SentBytes: Hashable, Sendable {
    /// The number of bytes that the socket accepted.
    public var accepted: Int64 = 0

    /// The number of bytes that were read from the body; the server can't have received more. It can exceed ``accepted``, because libcurl
    /// buffers bytes, and resets its count of accepted bytes when it repeats a request.
    public var read: Int64 = 0
}
