import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// The value of the column `generation` for a stand-in, which is a row for a file or folder whose name can't be stored. Other rows have
    /// a value of at least 1. No attempt transfers a stand-in.
    static let standInGeneration: Int64 = 0

    /// An SQL condition for rows of the manifest (the table `file`) that their session's statistics include. Excludes the entries of a remote
    /// folder or subfolder that has not been listed completely, and the rows that an interrupted expansion by an earlier version of
    /// TransferKit left.
    static func isInStatistics(_ session: String) -> String {
        """
        position < ifnull((SELECT first_position FROM item WHERE item.session = \(session) ORDER BY sequence LIMIT 1), 9223372036854775807)
        """
    }

    /// Stores items at the end of a session. Files before the first folder go into the manifest. The first folder and all items after it wait
    /// until the folder has been read.
    static func insertItems(_ items: [ItemDraft], of key: SessionKey, firstPosition: Int64, in db: Database) throws {
        let files = items.prefix { !$0.kind.isFolder }
        let insertion = try db.cachedStatement(
            sql: """
                INSERT INTO file(session, position, kind, source, destination, state, size, upload_url, unsized, creation_url, form,
                    symbolic_links)
                VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?)
                """)
        for (position, file) in zip(firstPosition..., files) {
            try insertion.execute(
                arguments: [
                    key, position, file.kind.rawValue, file.source, file.destination, min(max(0, file.size), FileSize.maximum),
                    file.uploadCapability?.text, file.isUnsized, file.creationCapability?.text, try StoreCoding.encodeIfPresent(file.form),
                    file.filePolicy,
                ])
        }
        try insertPendingItems(items.dropFirst(files.count), of: key, in: db)
    }

    private static func insertPendingItems(_ items: ArraySlice<ItemDraft>, of key: SessionKey, in db: Database) throws {
        guard !items.isEmpty else { return }
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT max(sequence) FROM item WHERE session = ?"), arguments: [key])
        let insertion = try db.cachedStatement(
            sql: """
                INSERT INTO item(session, sequence, kind, source, destination, size, symbolic_links, upload_url, unsized,
                    creation_url, form)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for (sequence, item) in zip(try next(after: last)..., items) {
            try insertion.execute(
                arguments: [
                    key, sequence, item.kind.rawValue, item.source, item.destination, min(max(0, item.size), FileSize.maximum),
                    item.symbolicLinks.rawValue,
                    item.uploadCapability?.text, item.isUnsized, item.creationCapability?.text, try StoreCoding.encodeIfPresent(item.form),
                ])
        }
    }

    /// Returns the position or sequence for a new row after the last row. Throws if the last row is damaged and leaves no valid number.
    static func next(after last: Int64?) throws -> Int64 {
        guard let last else { return 0 }
        guard last < greatestPosition else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row has an impossible position")
        }
        return max(-1, last) + 1
    }

    /// Returns an SQL expression whose value is limited to 0 ... ``maximumBytes``. The sum of two such numbers does not overflow.
    static func bounded(_ expression: String) -> String { "min(max(\(expression), 0), \(maximumBytes))" }

    static func addItems(_ items: [ItemDraft], to key: SessionKey, in db: Database) throws {
        let hasPendingItems = try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM item WHERE session = ?)"), arguments: [key])
        if hasPendingItems == true {
            try insertPendingItems(items[...], of: key, in: db)
        } else {
            let last = try Int64.fetchOne(
                db.cachedStatement(sql: "SELECT max(position) FROM file WHERE session = ?"), arguments: [key])
            try insertItems(items, of: key, firstPosition: try next(after: last), in: db)
        }
        try execute(
            db, "UPDATE session SET files = files + ?, bytes_total = \(bounded("bytes_total + ?")) WHERE key = ?",
            [items.count, SessionFigures.bytes(items), key])
    }
}
