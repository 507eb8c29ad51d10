import Foundation
import GRDB
import TransferCore

/// Consecutive files of a session that a run reads ahead.
package struct FilePage: Sendable {
    package var files: [PendingFile]
    /// The checkpoints of earlier attempts, by position and by the endpoint's address.
    package var checkpoints: [Int64: [String: StoredCheckpoint]]
    /// The number of the session's files if this is the last page; nil if there may be more files.
    package var filesSeen: Int64?

    package init(files: [PendingFile], checkpoints: [Int64: [String: StoredCheckpoint]], filesSeen: Int64?) {
        self.files = files
        self.checkpoints = checkpoints
        self.filesSeen = filesSeen
    }
}

extension QueueStore {
    /// Returns the next unfinished files of a session, with all data needed to resume them.
    package func page(of key: SessionKey, after position: Int64, limit: Int) async throws -> FilePage {
        var files = try await pendingFiles(of: key, after: position, limit: limit)
        var filesSeen: Int64?
        if files.count < limit {
            // Count the files between two reads. The second read returns the files that were added before the count, so every counted file
            // has been read.
            filesSeen = try await fileCount(of: key)
            let added = try await pendingFiles(of: key, after: files.last?.position ?? position, limit: limit)
            files += added
            if added.count == limit { filesSeen = nil }
        }
        var page = FilePage(files: files, checkpoints: [:], filesSeen: filesSeen)
        guard let first = files.first, let last = files.last else { return page }
        let generations = Dictionary(uniqueKeysWithValues: files.map { ($0.position, $0.generation) })
        page.checkpoints = try await checkpoints(of: key, in: first.position...last.position, generations: generations)
        return page
    }

    private func fileCount(of key: SessionKey) async throws -> Int64 {
        try await read { db in
            try Int64.fetchOne(
                db.cachedStatement(sql: "SELECT count(*) FROM file WHERE session = ?"), arguments: [key]) ?? 0
        }
    }

    private func checkpoints(of key: SessionKey, in positions: ClosedRange<Int64>, generations: [Int64: Int64]) async throws
        -> [Int64: [String: StoredCheckpoint]]
    {
        try await read { db in
            var found: [Int64: [String: StoredCheckpoint]] = [:]
            let rows = try StoredRow.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT position, endpoint, generation, data, confirmed, identity, expires_at FROM checkpoint
                        WHERE session = ? AND position BETWEEN ? AND ?
                        """),
                arguments: [key, positions.lowerBound, positions.upperBound])
            while let row = try rows.next() {
                // An unreadable checkpoint is ignored, so its file restarts.
                guard let position = try? row.decode(Int64.self, atIndex: 0), let address = try? row.decode(String.self, atIndex: 1),
                    let generation = try? row.decode(Int64.self, atIndex: 2), generations[position] == generation,
                    let stored = try? Self.storedCheckpoint(row, from: 3)
                else { continue }
                found[position, default: [:]][address] = stored
            }
            return found
        }
    }
}
