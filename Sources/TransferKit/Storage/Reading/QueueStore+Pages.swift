import Foundation
import GRDB
import TransferCore

/// Consecutive unfinished files of a session, which a run reads ahead.
package struct FilePage: Sendable {
    package var files: [PendingFile]
    /// The checkpoints of earlier attempts, by position and by the endpoint's address.
    package var checkpoints: [Int64: [String: StoredCheckpoint]]
    /// The position of the last file that was examined. The next page starts after this position.
    package var end: Int64
    /// Whether the session has no unfinished file after this page.
    package var isLast: Bool

    package init(files: [PendingFile] = [], checkpoints: [Int64: [String: StoredCheckpoint]] = [:], end: Int64, isLast: Bool) {
        self.files = files
        self.checkpoints = checkpoints
        self.end = end
        self.isLast = isLast
    }
}

extension QueueStore {
    /// Returns the next unfinished files of a session, with all data needed to resume them.
    package func page(of key: SessionKey, after position: Int64, limit: Int) async throws -> FilePage {
        var page = try await read { [sources] db in
            let files = try Self.pendingFiles(of: key, after: position, limit: limit, sources, in: db)
            var page = FilePage(files: files, end: files.last?.position ?? position, isLast: files.count < limit)
            if page.isLast {
                let last = try Int64.fetchOne(
                    db.cachedStatement(sql: "SELECT max(position) FROM file WHERE session = ?"), arguments: [key])
                page.end = max(page.end, last ?? page.end)
            }
            return page
        }
        guard let first = page.files.first, let last = page.files.last else { return page }
        var generations: [Int64: Int64] = [:]
        for file in page.files { generations[file.position] = file.generation }
        page.checkpoints = try await checkpoints(of: key, in: first.position...last.position, generations: generations)
        return page
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
