import Locking
import TransferCore
import TransportTesting

/// A memory transport that keeps a list of its attempts.
struct NotingTransport: Transport {
    let id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    let seen: Locked<[FileAttempt]>

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        seen.withLock { $0.append(attempt) }
        return try await memory.perform(attempt, reporting: reporter)
    }

    func shutdown() async {
        await memory.shutdown()
    }
}
