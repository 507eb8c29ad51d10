public import TransferCore
public import TransportSupport

extension CurlEngine {
    /// Sends a request and hands the body of the answer to a sink while it comes in.
    ///
    /// Up to ``Configuration/downloadThreads`` downloads are received and written each on a thread of its own; of others, at most 2 MiB are on the
    /// way from the network to the sink. While the sink is slow, nothing is read from the network, and no other transfer is kept waiting. May be
    /// called from any task, any number of times at once. Cancelling the task closes the connection and returns at once, even while the sink
    /// writes.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - sink: Takes the body, if it accepts the answer. All that came was written when this returns or throws, cancellation apart.
    ///   - threads: The threads that the sink writes on if the download has none of its own, for example those for its disk; nil for
    ///     ``Configuration/writerThreads`` of the engine, which all such downloads share.
    ///   - pacing: Asked how many bytes of the body may be taken now. Called on an engine's thread: must not block.
    ///   - progress: Told how many bytes of the body the sink has written, each time that there are more. Called on an engine's thread: must
    ///     not block.
    /// - Returns: The answer, with an empty body if the sink accepted it.
    /// - Throws: A ``CurlEngineError`` if there is no complete answer, what the sink throws, or `CancellationError`.
    public func download(
        _ request: HTTPRequest, into sink: any HTTPResponseSink, writingOn threads: WorkerThreads? = nil,
        pacing: (@Sendable (_ limit: Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> HTTPResponse {
        try await run(request, .download(sink, writers: threads), pacing: pacing, progress: progress).response
    }
}
