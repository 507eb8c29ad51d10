/// Takes the body of an answer, piece by piece. See ``CurlEngine/download(_:into:writingOn:pacing:progress:)``.
public protocol HTTPResponseSink: Sendable {
    /// Looks at the status and the headers of the final answer before any of its body. Called at most once, on the engine's thread: must not
    /// block.
    ///
    /// - Returns: Whether the body is wanted. If not, it is kept in memory, up to ``CurlEngine/Configuration/maximumResponseBody``, as an error's
    ///   text is.
    /// - Throws: Any error; it ends the request.
    func accepts(_ head: HTTPResponseHead) throws -> Bool

    /// Writes the next bytes of the body. Called on a thread that is allowed to block, one call at a time. A call that was under way when the
    /// request was cancelled may end after the request did.
    ///
    /// - Throws: Any error; it ends the request.
    func write(_ bytes: RawSpan) throws

    /// Where in a file the next bytes go, so that they can be handed over in pieces that end with whole pages of it; 0, the default, if that is of no
    /// concern. Called before each piece, as ``write(_:)`` is.
    var offset: Int64 { get }
}

extension HTTPResponseSink {
    /// 0: where the bytes go is of no concern.
    public var offset: Int64 { 0 }
}

/// The beginning of an answer.
public struct HTTPResponseHead: Sendable {
    /// The status code, for example 206.
    public var status: Int

    /// The headers.
    public var headers: HTTPHeaders
}
