import TransferCore

/// A transport whose attempts ignore cancellation and complete after ``finish()``.
final class UninterruptibleTransport: Transport {
    let id: TransportID = "memory"
    private let beginning = AsyncStream<Void>.makeStream()
    private let end = AsyncStream<Void>.makeStream()

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        beginning.continuation.finish()
        let end = end.stream
        await Task { for await _ in end {} }.value
        return TransferReceipt(bytes: try attempt.source.size)
    }

    func waitUntilBegun() async { for await _ in beginning.stream {} }
    func finish() { end.continuation.finish() }
    func shutdown() async {}
}
