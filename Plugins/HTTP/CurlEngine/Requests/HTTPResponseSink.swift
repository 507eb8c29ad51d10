/// Takes the body of a response, piece by piece. See ``CurlEngine/download(_:into:writingOn:pacing:progress:)``.
public protocol HTTPResponseSink: Sendable {
    /// Decides by the status and the headers of the final response, before any of its body. Called at most once, on the engine's thread:
    /// must not block.
    ///
    /// - Returns: Whether to write the body. If not, up to ``CurlEngine/Configuration/maximumResponseBody`` bytes of it are kept in memory,
    ///   for an error's text.
    /// - Throws: Any error; it ends the request.
    func accepts(_ head: HTTPResponseHead) throws -> Bool

    /// Writes the next bytes of the body. Called on a thread that can block, one call at a time. A call can still be running after the
    /// request was cancelled.
    ///
    /// - Throws: Any error; it ends the request.
    func write(_ bytes: RawSpan) throws

    /// The position in a file where the next bytes go, so that they can be passed in pieces that end at whole pages; 0, the default, if
    /// that does not matter. Called before each piece, as ``write(_:)`` is.
    var offset: Int64 { get }
}

extension HTTPResponseSink {
    /// Returns 0: the position does not matter.
    public var offset: Int64 { 0 }
}

/// The status and the headers of a response.
public struct HTTPResponseHead: Sendable {
    /// The status code, for example 206.
    public var status: Int

    /// The headers.
    public var headers: HTTPHeaders
}
