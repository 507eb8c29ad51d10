/// A server's final response. No status is treated as an error.
package struct HTTPResponse: Sendable {
    /// The status code, for example 204.
    package var status: Int

    /// The headers of the final response, without the headers of interim responses (1xx).
    package var headers: HTTPHeaders

    /// The first bytes of the body. ``CurlEngine/Configuration/maximumResponseBody`` and ``HTTPRequest/maximumResponseBody`` limit their
    /// number; the higher limit applies. Empty if an ``HTTPResponseSink`` accepted the body.
    package var body: [UInt8]

    /// Whether the response had more bytes than ``body`` contains. If so, the engine does not reuse an HTTP/1.1 connection.
    package var isBodyTruncated: Bool

    /// The HTTP version of the response.
    package var version: ConnectionOptions.HTTPVersion

    /// The URL of the request, as normalized by libcurl.
    package var effectiveURL: String

    /// How much of the request's body was sent. A server can respond before the whole body is sent.
    package var sent: SentBytes
}

/// How much of a request's body was sent.
package struct SentBytes: Hashable, Sendable {
    /// The number of bytes that the socket accepted.
    package var accepted: Int64 = 0

    /// The number of bytes that libcurl read from the body; the server can't have received more. The number can exceed ``accepted``:
    /// libcurl buffers bytes, and resets its count of accepted bytes when it repeats a request.
    package var read: Int64 = 0
}
