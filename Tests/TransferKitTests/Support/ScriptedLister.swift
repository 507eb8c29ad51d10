import TransferCore
import TransportTesting

/// A memory transport that lists the entries that a test specifies, in batches.
struct ScriptedLister: FolderListing {
    var id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    /// Returns a batch of a folder's entries, given the folder's path and the number of the batch; nil after the last batch.
    let batches: @Sendable (RemotePath, Int) async throws -> [RemoteEntry]?

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        var number = 0
        while let batch = try await batches(attempt.remotePath, number) {
            try await receive(batch)
            number += 1
        }
    }

    func shutdown() async {}
}
