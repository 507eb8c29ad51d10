package import TransferCore
package import TransportSupport

extension CurlEngine {
    /// Sends a request and writes the body of the response to a sink as it arrives.
    ///
    /// Up to ``Configuration/downloadThreads`` downloads have a dedicated thread, which receives and writes the bytes. The other downloads
    /// buffer at most 2 MiB each between the network and the sink. If a sink is slow, the engine stops reading that download from the
    /// network, without delaying other transfers.
    ///
    /// Can be called from any task, any number of times concurrently. Cancelling the task makes this method throw immediately, even during
    /// a write. The engine then ends the request. An HTTP/1.1 connection closes, at the latest when a running write returns.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - sink: Receives the body if it accepts the response. The sink writes all received bytes before this method returns or throws,
    ///     except after a cancellation, a shutdown or an error from the sink.
    ///   - threads: The writer threads for a download without a dedicated thread, for example the threads of the destination's disk; nil to
    ///     use the engine's shared ``Configuration/writerThreads``.
    ///   - pacing: Returns the allowance for the next bytes of the response's body, at most `limit` bytes. If it returns 0 bytes, the
    ///     engine calls it again after the allowance's `retryAfter`. Called on a thread of the engine. Must not block. Nil to receive without a
    ///     limit.
    ///   - progress: Called with the total number of bytes that the sink has written, after one or more writes. Called on a thread of the
    ///     engine. Must not block.
    /// - Returns: The response, with an empty body if the sink accepted it.
    /// - Throws: A ``CurlEngineError`` if there is no complete response; a `TransferError` if no writer thread can start; the sink's error;
    ///   or `CancellationError`.
    package func download(
        _ request: HTTPRequest, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .download(sink, writers: threads), pacing: pacing, progress: progress).response
    }
}
