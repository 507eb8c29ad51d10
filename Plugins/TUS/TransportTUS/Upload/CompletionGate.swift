import Locking
import TransferCore

/// Withholds the last byte of a request that completes an upload, until a saved checkpoint shows that the server may complete the upload. If the
/// process is killed, the next process knows from the checkpoint whether the server can have the whole file.
final class CompletionGate: Sendable {
    /// The number of remaining bytes at which the gate requests the checkpoint, early enough to save it before the last byte is due.
    private static let lead: Int64 = 4 << 20

    /// Yields when the checkpoint must be saved, possibly several times until the gate is open.
    let requests: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let size: Int64
    /// `granted` is the number of bytes that were allowed.
    private let state: Locked<(granted: Int64, isOpen: Bool)>

    /// - Parameters:
    ///   - size: The size of the request's content in bytes.
    ///   - isOpen: Whether the checkpoint is already saved.
    init(size: Int64, isOpen: Bool) {
        self.size = size
        state = Locked((0, isOpen))
        (requests, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Whether the last byte may have been sent.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Whether the whole content may have been sent.
    var mayHaveSentAll: Bool { state.withLock { $0.granted >= size } }

    /// Returns the allowance for the next bytes of the request's content, at most `limit` bytes. Called on the HTTP client's thread.
    ///
    /// - Parameter pacing: Returns the allowance of the rate limits, at most the given number of bytes.
    func allowance(upTo limit: Int, by pacing: (Int) -> Allowance) -> Allowance {
        let room = state.withLock { $0.isOpen ? nil : size - 1 - $0.granted }
        var wanted = limit
        if let room {
            if room <= Self.lead { continuation.yield() }
            guard room > 0 else { return Allowance(bytes: 0, retryAfter: .milliseconds(2)) }
            wanted = Int(min(Int64(limit), room))
        }
        var allowance = pacing(wanted)
        allowance.bytes = max(0, min(allowance.bytes, wanted))
        state.withLock { $0.granted = min($0.granted, .max - Int64(allowance.bytes)) + Int64(allowance.bytes) }
        return allowance
    }

    /// Saves the checkpoint when it is requested, and then opens the gate. Returns after ``end()``, or throws the error of `save`.
    func open(saving save: () async throws -> Void) async throws {
        for await _ in requests where !isOpen {
            try await save()
            state.withLock { $0.isOpen = true }
        }
    }

    /// Ends ``requests``. Called when the HTTP request has ended.
    func end() { continuation.finish() }
}
