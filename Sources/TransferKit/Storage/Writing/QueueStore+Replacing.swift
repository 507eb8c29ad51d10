import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// Returns the rows of selected items; nil if one of the items does not exist, has begun, or is a stream. With ``ItemSelection/all``,
    /// returns an empty set instead of the rows, and returns nil also if the session has more than ``maximumRowsPerSweep`` rows.
    ///
    /// An item has begun if it has a checkpoint, has a generation (``PendingFile/generation``) above 1, or has completed or failed. An item of
    /// ``ItemSelection/at(_:)`` must also be pending. It must be neither a folder that is being read nor a file that the statistics do not
    /// include yet (``isInStatistics(_:)``).
    ///
    /// Transports name the content on a server after the session, the position and the generation. A new item at the position of an item that
    /// has begun could get the name of that item's content, so the item that has begun must keep its position.
    package func replaceableItems(_ selection: ItemSelection, of key: SessionKey) async throws -> ReplaceableItems? {
        try await read { try Self.replaceableItems(selection, of: key, in: $0) }
    }

    /// Removes items that have not begun, and adds items at the end.
    ///
    /// - Parameter rows: The rows that the caller checked.
    /// - Throws: ``QueueError`` with the code `invalidTransition` if one of the items has begun or was replaced since the caller's check, or if
    ///   another call removed the other items, so that the session would have no items.
    static func replaceItems(
        _ selection: ItemSelection, _ rows: ReplaceableItems, with items: [ItemDraft], of key: SessionKey,
        _ transaction: inout StoreTransaction, in db: Database
    ) throws {
        let conflict = QueueError(.invalidTransition, "The items changed while they were being replaced. Read them again.")
        guard try replaceableItems(selection, of: key, in: db) == rows else { throw conflict }
        if selection == .all {
            transaction.freed += try blobs(of: key, in: db)
            for table in ["file", "item", "directory"] { try execute(db, "DELETE FROM \(table) WHERE session = ?", [key]) }
            try execute(db, "UPDATE session SET files = 0, files_failed = 0, bytes_total = 0 WHERE key = ?", [key])
        } else {
            var bytes: Int64 = 0
            for (table, column, numbers) in [("file", "position", rows.positions), ("item", "sequence", rows.sequences)] {
                for number in numbers {
                    let condition = "session = ? AND \(column) = ?"
                    if let row = try StoredRow.fetchOne(
                        db.cachedStatement(sql: "SELECT kind, source, size FROM \(table) WHERE \(condition)"), arguments: [key, number])
                    {
                        if try [ItemKind.blob, .form].map(\.rawValue).contains(row.decode(String.self, atIndex: 0)) {
                            transaction.freed.append(try row.decode(atIndex: 1))
                        }
                        bytes.addSaturated(try Self.bytes(row, atIndex: 2))
                    }
                    try execute(db, "DELETE FROM \(table) WHERE \(condition)", [key, number])
                }
            }
            try execute(
                db, "UPDATE session SET files = max(0, files - ?), bytes_total = \(bounded("bytes_total - ?")) WHERE key = ?",
                [rows.count, min(bytes, maximumBytes), key])
            // Another call may have removed the other items.
            if items.isEmpty,
                try Int64.fetchOne(db.cachedStatement(sql: "SELECT files FROM session WHERE key = ?"), arguments: [key]) == 0
            {
                throw conflict
            }
        }
        if !items.isEmpty { try addItems(items, to: key, in: db) }
    }

    private static func replaceableItems(_ selection: ItemSelection, of key: SessionKey, in db: Database) throws -> ReplaceableItems? {
        switch selection {
        case .all:
            guard try rowCount(of: key, atMost: maximumRowsPerSweep + 1, in: db) <= maximumRowsPerSweep else { return nil }
            let hasBegun = try Bool.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM checkpoint WHERE session = ?1)
                            OR EXISTS (SELECT 1 FROM file WHERE session = ?1
                                AND (state IN ('completed', 'failed') OR generation > 1 OR kind = 'stream'))
                            OR EXISTS (SELECT 1 FROM item WHERE session = ?1 AND kind = 'stream')
                        """), arguments: [key])
            return hasBegun == false ? ReplaceableItems() : nil
        case .at(let positions):
            return try replaceableItems(at: Set(positions), of: key, in: db)
        }
    }

    private static func replaceableItems(at positions: Set<Int64>, of key: SessionKey, in db: Database) throws -> ReplaceableItems? {
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(position) FROM file WHERE session = ?"), arguments: [key])
        let firstPending = try next(after: last)
        var rows = ReplaceableItems()
        for position in positions {
            if position < firstPending {
                guard
                    let row = try StoredRow.fetchOne(
                        db.cachedStatement(
                            sql: """
                                SELECT source, destination FROM file WHERE session = ?1 AND position = ?2 AND state = 'pending'
                                    AND generation = 1 AND kind <> 'stream' AND \(isInStatistics("?1")) AND NOT EXISTS (SELECT 1 FROM checkpoint
                                        WHERE checkpoint.session = ?1 AND checkpoint.position = ?2)
                                """), arguments: [key, position])
                else { return nil }
                rows.positions.insert(position)
                rows.contents[position] = [try row.decode(Data.self, atIndex: 0), try row.decode(Data.self, atIndex: 1)]
            } else {
                // Items that are not in the manifest (the table `file`) yet get the positions after the last position in the manifest.
                guard
                    let row = try StoredRow.fetchOne(
                        db.cachedStatement(
                            sql: """
                                SELECT CASE WHEN first_position IS NULL AND kind <> 'stream' THEN sequence END, source, destination
                                FROM item WHERE session = ? ORDER BY sequence LIMIT 1 OFFSET ?
                                """), arguments: [key, position - firstPending]),
                    let sequence = try row.decode(Int64?.self, atIndex: 0)
                else { return nil }
                rows.sequences.insert(sequence)
                rows.contents[position] = [try row.decode(Data.self, atIndex: 1), try row.decode(Data.self, atIndex: 2)]
            }
        }
        return rows
    }
}
