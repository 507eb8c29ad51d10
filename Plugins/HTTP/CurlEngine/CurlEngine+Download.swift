public import TransferCore
public import TransportSupport

extension CurlEngine {
    /// Sends a request and writes the body of the response to a sink as it arrives.
    ///
    /// Up to ``Configuration/downloadThreads`` downloads are each received and written on a dedicated thread. The others buffer at most 2 MiB
    /// between the network and the sink. If the sink is slow, the engine stops reading for it from the network, and other transfers are not
    /// delayed. Can be called from any task, any number of times in parallel. Cancelling the task closes the connection and returns
    /// immediately, even while the sink writes.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - sink: Takes the body if it accepts the response. When this method returns or throws, all received bytes have been written, except
    ///     after a cancellation.
    ///   - threads: The threads that the sink writes on if the download has no dedicated thread, for example those of its disk; nil for the
    ///     engine's ``Configuration/writerThreads``, which all such downloads share.
    ///   - pacing: Returns how many bytes of the body may be received now. Called on an engine's thread; must not block.
    ///   - progress: Called with the number of bytes that the sink has written, each time it grows. Called on an engine's thread; must not
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
