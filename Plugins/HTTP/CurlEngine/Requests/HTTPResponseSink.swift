/// Receives the body of a response, as it arrives. See ``CurlEngine/download(_:into:writingOn:pacing:progress:)``.
package protocol HTTPResponseSink: Sendable {
    /// Decides from the status and the headers of the final response whether to receive its body. Called at most once, before any byte of the body,
    /// on a thread of the engine. Must not block.
    ///
    /// - Returns: Whether to write the body. If not, the engine keeps up to ``CurlEngine/Configuration/maximumResponseBody`` bytes of the body in
    ///   memory, for use in an error message.
    /// - Throws: Any error. It ends the request.
    func accepts(_ head: HTTPResponseHead) throws -> Bool

    /// Writes the next bytes of the body. Called on a thread that may block, one call at a time. A call may still be running after the request was
    /// cancelled.
    ///
    /// - Throws: Any error. It ends the request.
    func write(_ bytes: RawSpan) throws

    /// The file offset, in bytes, at which the next write starts; 0, the default, if the offset does not matter.
    ///
    /// For a download with a dedicated thread, the engine reads this property before it collects the bytes of a write, on the same thread as
    /// ``write(_:)``. Full writes then end at offsets that are multiples of 256 KiB. For other downloads, the engine does not read this property.
    var offset: Int64 { get }
}

extension HTTPResponseSink {
    /// 0: the offset does not matter.
    package var offset: Int64 { 0 }
}

/// The status and the headers of a response.
package struct HTTPResponseHead: Sendable {
    /// The status code, for example 206.
    package var status: Int

    package var headers: HTTPHeaders
}
