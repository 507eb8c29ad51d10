public import TransferCore
public import TransportSupport

extension CurlEngine {
    /// Sends a request and writes the body of the response to a sink as it arrives.
    ///
    /// Up to ``Configuration/downloadThreads`` downloads have a dedicated thread, which receives and writes the bytes. The other downloads
    /// buffer at most 2 MiB each between the network and the sink. If a sink is slow, the engine stops reading that download from the
    /// network, without delaying other transfers.
    ///
    /// Can be called from any task, any number of times concurrently. When the task is cancelled, closes the connection and throws
    /// immediately, even while the sink writes.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - sink: Receives the body if it accepts the response. When this method returns or throws, the sink has written all received bytes,
    ///     except after a cancellation, a shutdown, or an error from the sink.
    ///   - threads: The writer threads for a download without a dedicated thread, for example the threads of the destination's disk; nil to
    ///     use the engine's shared ``Configuration/writerThreads``.
    ///   - pacing: Returns how many bytes of the body may be received now. Called on a thread of the engine. Must not block.
    ///   - progress: Called with the number of bytes that the sink has written, each time this number grows. Called on a thread of the
    ///     engine. Must not block.
    /// - Returns: The response, with an empty body if the sink accepted it.
    /// - Throws: A ``CurlEngineError`` if there is no complete response, the sink's error, or `CancellationError`.
    public func download(
        _ request: HTTPRequest, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .download(sink, writers: threads), pacing: pacing, progress: progress).response
    }
}
