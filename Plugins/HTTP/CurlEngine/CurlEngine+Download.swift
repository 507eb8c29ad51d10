public import TransferCore
public import TransportSupport

extension CurlEngine {
    /// Sends a request and writes the body of the response to a sink while it arrives.
    ///
    /// Up to ``Configuration/downloadThreads`` downloads are each received and written on a thread of their own. Others have at most 2 MiB
    /// between the network and the sink. While the sink is slow, the engine reads nothing for it from the network, and other transfers are
    /// not delayed. Can be called from any task, any number of times in parallel. Cancelling the task closes the connection and returns at
    /// once, even while the sink writes.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - sink: Takes the body, if it accepts the response. All received bytes were written when this returns or throws, except after
    ///     cancellation.
    ///   - threads: The threads that the sink writes on if the download has no thread of its own, for example those of its disk; nil for
    ///     the engine's ``Configuration/writerThreads``, which all such downloads share.
    ///   - pacing: Asked how many bytes of the body are allowed now. Called on an engine's thread: must not block.
    ///   - progress: Called with the number of bytes that the sink has written, each time it grows. Called on an engine's thread: must not
    ///     block.
    /// - Returns: The response, with an empty body if the sink accepted it.
    /// - Throws: A ``CurlEngineError`` if there is no complete response, the sink's error, or `CancellationError`.
    public func download(
        _ request: HTTPRequest, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .download(sink, writers: threads), pacing: pacing, progress: progress).response
    }
}
