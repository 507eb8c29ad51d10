import Locking
import TransferCore
import TransportTesting

/// A memory transport that records its attempts in a list.
struct AttemptRecordingTransport: Transport {
    let id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    let attempts: Locked<[FileAttempt]>

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        attempts.withLock { $0.append(attempt) }
        return try await memory.perform(attempt, reporting: reporter)
    }

    func shutdown() async {
        await memory.shutdown()
    }
}
