import TransferCore
import TransportTesting

/// Lists what a test wants, piece by piece, and receives files as the memory does.
struct ScriptedLister: FolderListing {
    var id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    /// The piece of this number of a folder's entries; nil at its end.
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
