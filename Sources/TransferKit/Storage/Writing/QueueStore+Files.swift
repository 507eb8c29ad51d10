import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// An SQL expression for the size of the file at position ?2 of the session ?1, limited to 0 ... ``FileSize/maximum``.
    private static let sizeOfFile = """
        ifnull((SELECT min(max(size, 0), \(FileSize.maximum)) FROM file WHERE session = ?1 AND position = ?2), 0)
        """

    static func apply(_ event: FileEvent, to session: SessionKey, position: Int64, at now: Date, in db: Database) throws {
        switch event {
        case .checkpoint(let checkpoint, let endpoint, let generation, let identity):
            try execute(
                db,
                """
                INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity, expires_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET generation = excluded.generation, data = excluded.data, confirmed = excluded.confirmed,
                    identity = excluded.identity, expires_at = excluded.expires_at
                """,
                [
                    session, position, endpoint.address, generation, checkpoint.data, min(max(0, checkpoint.confirmed), FileSize.maximum),
                    try StoreCoding.encodeIfPresent(identity) ?? "null", checkpoint.expiresAt.map { StoreCoding.encode($0) as Int64 },
                ])
        case .size(let size):
            try execute(
                db,
                """
                UPDATE session SET bytes_total = \(bounded("bytes_total - \(sizeOfFile) + ?3")) WHERE key = ?1
                """, [session, position, min(max(0, size), FileSize.maximum)])
            try execute(
                db, "UPDATE file SET size = ?, unsized = 0 WHERE session = ? AND position = ?",
                [min(max(0, size), FileSize.maximum), session, position])
        case .completed(let receipt, let endpoint):
            try execute(
                db, "UPDATE file SET state = ?, error = NULL, receipt = ? WHERE session = ? AND position = ?",
                [ItemState.completed.rawValue, try StoreCoding.encode(receipt), session, position])
            // The file's content at other endpoints is no longer needed.
            try discardCheckpoints(of: session, position: position, completedAt: endpoint.address, at: now, in: db)
            if let leftovers = receipt.leftovers { try discard(leftovers, at: endpoint, position: position, now, in: db) }
            try execute(
                db, "UPDATE session SET files_done = files_done + 1, bytes_done = \(bounded("bytes_done + ?")) WHERE key = ?",
                [min(max(0, receipt.bytes), FileSize.maximum), session])
        case .failed(let error):
            try execute(
                db, "UPDATE file SET state = ?, error = ? WHERE session = ? AND position = ?",
                [ItemState.failed.rawValue, try StoreCoding.encode(error), session, position])
            if error.makesCheckpointsUseless {
                try discardCheckpoints(of: session, position: position, completedAt: nil, at: now, in: db)
            }
            try execute(db, "UPDATE session SET files_failed = files_failed + 1 WHERE key = ?", [session])
        case .foundFolder:
            try discardCheckpoints(of: session, position: position, completedAt: nil, at: now, in: db)
            try makeFolderItem(of: session, position, in: db)
        case .record: break
        case .restarted(let generation, let error):
            try discardCheckpoints(of: session, position: position, completedAt: nil, at: now, in: db)
            try execute(
                db, "UPDATE file SET generation = ?, error = ? WHERE session = ? AND position = ?",
                [generation, try StoreCoding.encode(error), session, position])
        }
    }

    /// Handles a file whose remote name turned out to refer to a folder: moves the row from the manifest (the table `file`) to the end of
    /// the pending items (the table `item`). A run lists the folder later.
    private static func makeFolderItem(of session: SessionKey, _ position: Int64, in db: Database) throws {
        try execute(
            db,
            """
            INSERT INTO item(session, sequence, kind, directory, source, destination, size, symbolic_links)
            SELECT session, (SELECT ifnull(max(sequence), -1) + 1 FROM item WHERE session = ?1), 'remoteFolder', directory, source,
                destination, 0, 'skip' FROM file WHERE session = ?1 AND position = ?2
            """, [session, position])
        try execute(
            db,
            """
            UPDATE session SET bytes_total = \(bounded("bytes_total - \(sizeOfFile)")) WHERE key = ?1
            """, [session, position])
        try execute(db, "DELETE FROM file WHERE session = ? AND position = ?", [session, position])
    }
}

extension TransferError {
    /// Whether no attempt can resume the file after this error, because the file changed, or because the transferred content is wrong or
    /// lost. The queue then removes the transferred content.
    var makesCheckpointsUseless: Bool { failureClass == .sourceChanged || failureClass == .resumeLost }
}
