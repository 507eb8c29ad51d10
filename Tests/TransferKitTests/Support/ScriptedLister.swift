import TransferCore
import TransportTesting

/// Lists what a test specifies, piece by piece, and receives files like the transport in memory.
struct ScriptedLister: FolderListing {
    var id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    /// This piece of a folder's entries; nil at its end.
    let pieces: @Sendable (RemotePath, Int) async throws -> [RemoteEntry]?

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        var number = 0
        while let piece = try await pieces(attempt.remotePath, number) {
            try await receive(piece)
            number += 1
        }
    }

    func shutdown() async {}
}
