import Foundation
import GRDB
import TransferCore

extension QueueStore {
    static func apply(_ step: ExpansionStep, to session: SessionKey, in db: Database) throws {
        switch step {
        case .begin(let item):
            try execute(
                db,
                """
                UPDATE item SET
                    first_position = ifnull((SELECT max(position) FROM file WHERE session = ?1), -1) + 1,
                    first_directory = ifnull((SELECT max(number) FROM directory WHERE session = ?1), -1) + 1
                WHERE session = ?1 AND sequence = ?2 AND first_position IS NULL
                """, [session, item])
        case .discard(let item, let limit):
            for (table, column, first) in [("file", "position", "first_position"), ("directory", "number", "first_directory")] {
                try execute(
                    db,
                    """
                    DELETE FROM \(table) WHERE session = ?1 AND \(column) IN (SELECT \(column) FROM \(table) WHERE session = ?1
                        AND \(column) >= (SELECT \(first) FROM item WHERE session = ?1 AND sequence = ?2)
                        ORDER BY \(column) DESC LIMIT ?3)
                    """, [session, item, limit])
            }
        case .add(_, let batch):
            try add(batch, to: session, in: db)
        case .read(let item, let batch, let place):
            try add(batch, to: session, in: db)
            try count(batch.totals, insteadOf: item, of: session, in: db)
            try advance(item, "place", to: StoreCoding.encode(place), of: session, in: db)
            // The total size is unknown until the whole folder has been read.
            try execute(db, "UPDATE item SET unsized = 1 WHERE session = ? AND sequence = ?", [session, item])
        case .listed(let item, let totals, let next):
            try advance(item, "next_directory", to: next, of: session, in: db)
            try count(totals, of: session, in: db)
        case .finish(let item, let totals):
            try count(totals, insteadOf: item, of: session, in: db)
            try execute(db, "DELETE FROM item WHERE session = ? AND sequence = ?", [session, item])
        case .takeFiles(let limit):
            try takeFiles(limit, of: session, in: db)
        case .group(let steps):
            for step in steps { try apply(step, to: session, in: db) }
        }
    }

    /// Stores where the expansion of an item's folder resumes. After an interruption, the next run keeps the rows that were added before
    /// this call.
    private static func advance(
        _ item: Int64, _ column: String, to value: some DatabaseValueConvertible, of session: SessionKey, in db: Database
    ) throws {
        try execute(
            db,
            """
            UPDATE item SET \(column) = ?3,
                first_position = ifnull((SELECT max(position) FROM file WHERE session = ?1), -1) + 1,
                first_directory = ifnull((SELECT max(number) FROM directory WHERE session = ?1), -1) + 1
            WHERE session = ?1 AND sequence = ?2
            """, [session, item, value])
    }

    /// Adds totals to the session's statistics.
    ///
    /// - Parameter item: The item that the totals belong to. Until the first rows of a local folder are added, or a remote folder has been
    ///   listed completely, the statistics include the item itself as one file.
    private static func count(_ totals: ManifestTotals, insteadOf item: Int64, of session: SessionKey, in db: Database) throws {
        var totals = totals
        let countsItem = try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT place IS NULL FROM item WHERE session = ? AND sequence = ?"), arguments: [session, item])
        if countsItem == true { totals.files -= 1 }
        try count(totals, of: session, in: db)
    }

    private static func count(_ totals: ManifestTotals, of session: SessionKey, in db: Database) throws {
        try execute(
            db,
            "UPDATE session SET files = files + ?, files_failed = files_failed + ?, bytes_total = \(bounded("bytes_total + ?")) WHERE key = ?",
            [totals.files, totals.failed, min(max(0, totals.bytes), maximumBytes), session])
    }

    private static func add(_ batch: ManifestBatch, to session: SessionKey, in db: Database) throws {
        let directories = try db.cachedStatement(
            sql: "INSERT INTO directory(session, number, parent, source, destination) VALUES (?, ?, ?, ?, ?)")
        for directory in batch.directories {
            try directories.execute(
                arguments: [session, directory.number, directory.parent, directory.source, directory.destination])
        }
        let files = try db.cachedStatement(
            sql: """
                INSERT INTO file(session, position, kind, directory, source, destination, state, size, error, symbolic_links, unsized,
                    generation, place)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for entry in batch.entries {
            try files.execute(
                arguments: [
                    session, entry.position, entry.kind.rawValue, entry.directory, entry.source, entry.destination, entry.state.rawValue,
                    min(max(0, entry.size), FileSize.maximum), try StoreCoding.encodeIfPresent(entry.error), entry.symbolicLinks?.rawValue,
                    entry.isUnsized, entry.isStandIn ? standInGeneration : 1, try StoreCoding.encodeIfPresent(entry.place),
                ])
        }
    }

    /// Moves at most `limit` files from the start of the list of waiting items to the end of the manifest, up to the next folder.
    private static func takeFiles(_ limit: Int, of session: SessionKey, in db: Database) throws {
        let end = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    WITH next AS MATERIALIZED (SELECT sequence, kind FROM item WHERE session = ?1 ORDER BY sequence LIMIT ?2)
                    SELECT max(sequence) + 1 FROM next
                        WHERE sequence < ifnull((SELECT min(sequence) FROM next WHERE kind IN ('folder', 'remoteFolder')), 9223372036854775807)
                    """), arguments: [session, limit])
        guard let end else { return }
        try execute(
            db,
            """
            INSERT INTO file(session, position, kind, directory, source, destination, state, size, upload_url, unsized,
                creation_url, form, symbolic_links)
            SELECT session, ifnull((SELECT max(position) FROM file WHERE session = ?1), -1) + row_number() OVER (ORDER BY sequence),
                kind, directory, source, destination, 'pending', size, upload_url, unsized, creation_url, form,
                CASE WHEN kind = 'file' AND symbolic_links <> 'follow' THEN symbolic_links END
            FROM item WHERE session = ?1 AND sequence < ?2
            """, [session, end])
        try execute(db, "DELETE FROM item WHERE session = ? AND sequence < ?", [session, end])
    }
}
