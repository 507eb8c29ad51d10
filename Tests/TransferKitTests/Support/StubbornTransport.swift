import Foundation
import Locking
import TransferCore
import TransferKit
import TransportTesting

/// A memory transport whose removals of unfinished uploads hang or fail at one host.
final class StubbornTransport: PartialDiscarding {
    private struct State {
        var host: String?
        var ignoresCancellation = false
        var refusal: TransferError?
        var arrival = Latch()
        var requestCount = 0
    }

    private let memory: MemoryTransport
    private let state = Locked(State())
    private let end = Latch()

    init(_ memory: MemoryTransport) {
        self.memory = memory
    }

    var id: TransportID { memory.id }

    /// Makes removals at a host hang.
    ///
    /// - Returns: A latch that opens when the first removal hangs. The latch stays open.
    func hang(at host: String, ignoresCancellation: Bool) -> Latch {
        state.withLock { state in
            state.host = host
            state.refusal = nil
            state.ignoresCancellation = ignoresCancellation
            return state.arrival
        }
    }

    func refuse(at host: String, _ refusal: TransferError) {
        state.withLock { state in
            state.host = host
            state.refusal = refusal
        }
    }

    /// Ends all hanging removals. Later removals no longer hang.
    func release() { end.open() }

    func acceptRequests() { state.withLock { $0.host = nil } }

    var requestCount: Int { state.withLock { $0.requestCount } }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        let state = state.withLock { state in
            state.requestCount += 1
            return state
        }
        guard let host = state.host, endpoint == memory.endpoint(host: host) else {
            return try await memory.discard(checkpoint, at: endpoint, credentials: credentials)
        }
        if let refusal = state.refusal { throw refusal }
        state.arrival.open()
        guard state.ignoresCancellation else { return try await end.wait() }
        let end = end
        await Task { try? await end.wait() }.value
    }

    func shutdown() async { await memory.shutdown() }
}
