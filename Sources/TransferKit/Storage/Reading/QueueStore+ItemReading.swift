import Foundation
import GRDB
import SystemPackage
import TransferCore

/// The first item that a session's manifest does not contain yet. The manifest is the session's list of files, the table `file`.
struct PendingItem: Sendable {
    var sequence: Int64
    var kind: ItemKind
    /// The number of the folder that contains the item; nil if the stored source and destination are complete paths.
    var directory: Int64?
    var source: Data
    var destination: Data
    var symbolicLinks: SymbolicLinkPolicy
    /// The local path; for a download or a remote folder, the local destination.
    var path: FilePath
    /// The complete remote path.
    var remotePath: [UInt8]
    /// The folders that contain the item, innermost first; empty if no folder of the manifest contains it.
    var ancestors: [FilePath]
    /// The numbers that the item's next rows in the manifest get; nil until the expansion of the item begins.
    var start: ManifestStart?
    /// Whether an interrupted expansion of the item left rows in the manifest that must be deleted.
    var hasRows = false
    /// For a local folder, the place at which the expansion resumes: the folders that are being read, from the item's own folder to the
    /// innermost. Empty if all entries are in the manifest, but the end of the expansion is not recorded yet; nil if the expansion has not
    /// stored any rows.
    var place: [FolderResumePoint]?
    /// For a remote folder, the number of the next folder to list; nil until the item's own folder has been listed.
    var nextDirectory: Int64?
}

extension QueueStore {
    func hasPendingItems(of key: SessionKey) async throws -> Bool {
        try await read { db in
            try Bool.fetchOne(
                db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM item WHERE session = ?)"), arguments: [key]) == true
        }
    }

    /// Returns the first item that is not in the manifest; nil if the manifest is complete.
    func pendingItem(of key: SessionKey) async throws -> PendingItem? {
        try await read { [sources] db in
            guard
                let row = try StoredRow.fetchOne(
                    db.cachedStatement(
                        sql: """
                            SELECT sequence, kind, directory, source, destination, symbolic_links, first_position, first_directory,
                                EXISTS (SELECT 1 FROM file WHERE file.session = item.session AND position >= first_position)
                                OR EXISTS (SELECT 1 FROM directory WHERE directory.session = item.session AND number >= first_directory),
                                next_directory, place
                            FROM item WHERE session = ? ORDER BY sequence LIMIT 1
                            """), arguments: [key])
            else { return nil }
            let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
            var paths = DirectoryPaths(of: key, sources)
            let location = try paths.location(
                kind, directory: try row.decode(atIndex: 2), source: try row.decode(atIndex: 3), destination: try row.decode(atIndex: 4),
                in: db)
            var ancestors: [FilePath] = []
            var directory: Int64? = try row.decode(atIndex: 2)
            while let number = directory {
                ancestors.append(FilePath(bytes: try paths.location(of: number, in: db).source))
                directory = try Int64.fetchOne(
                    db, sql: "SELECT parent FROM directory WHERE session = ? AND number = ?", arguments: [key, number])
            }
            var start: ManifestStart?
            var hasRows = false
            if let position = try row.decode(Int64?.self, atIndex: 6), let directory = try row.decode(Int64?.self, atIndex: 7) {
                guard (0...Self.greatestPosition).contains(position), (0...Self.greatestPosition).contains(directory) else {
                    throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(key) has a folder with an invalid first row")
                }
                start = ManifestStart(position: position, directory: directory)
                hasRows = try row.decode(atIndex: 8)
            }
            return PendingItem(
                sequence: try Self.position(row, atIndex: 0), kind: kind, directory: try row.decode(atIndex: 2),
                source: try row.decode(atIndex: 3),
                destination: try row.decode(atIndex: 4),
                symbolicLinks: SymbolicLinkPolicy(rawValue: try row.decode(atIndex: 5)) ?? .follow, path: FilePath(bytes: location.source),
                remotePath: location.destination, ancestors: ancestors, start: start, hasRows: hasRows,
                place: try Self.place(row.decode(String?.self, atIndex: 10), of: key),
                nextDirectory: try row.decode(Int64?.self, atIndex: 9).map { min(max(0, $0), Self.greatestPosition) })
        }
    }

    private static func place(_ stored: String?, of key: SessionKey) throws -> [FolderResumePoint]? {
        guard let stored else { return nil }
        guard let place = try? StoreCoding.decode([FolderResumePoint].self, from: stored),
            place.allSatisfy({ (0...greatestPosition).contains($0.number) })
        else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(key) has a folder with an invalid resume position")
        }
        return place
    }

    /// Returns at most `limit` items of a session, in order, starting at a position. The items in the manifest come before the pending items.
    package func items(of key: SessionKey, from position: Int64, limit: Int) async throws -> [ItemStatus] {
        let (position, limit) = (min(max(0, position), Self.greatestPosition), max(0, limit))
        return try await read { [sources] db in
            var paths = DirectoryPaths(of: key, sources)
            var items = try StoredRow.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT file.*, (SELECT max(confirmed) FROM checkpoint
                            WHERE checkpoint.session = file.session AND checkpoint.position = file.position) AS confirmed,
                            (SELECT expires_at FROM checkpoint WHERE checkpoint.session = file.session
                                AND checkpoint.position = file.position ORDER BY confirmed DESC LIMIT 1) AS expires_at
                        FROM file WHERE session = ? AND position >= ? ORDER BY position LIMIT ?
                        """),
                arguments: [key, position, limit]
            ).map { try Self.itemStatus($0, &paths, sources, in: db) }
            guard items.count < limit else { return items }
            let last = try Int64.fetchOne(
                db.cachedStatement(sql: "SELECT max(position) FROM file WHERE session = ?"), arguments: [key])
            let next = try Self.next(after: last)
            let skipped = position > next ? position - next : 0
            let rows = try StoredRow.fetchCursor(
                db.cachedStatement(sql: "SELECT * FROM item WHERE session = ? ORDER BY sequence LIMIT ? OFFSET ?"),
                arguments: [key, limit - items.count, skipped])
            var itemPosition = next + skipped
            while let row = try rows.next() {
                let kind = ItemKind(rawValue: try row.decode(forColumn: "kind")) ?? .file
                let location = try paths.location(
                    kind, directory: try row.decode(forColumn: "directory"), source: try row.decode(forColumn: "source"),
                    destination: try row.decode(forColumn: "destination"), in: db)
                let formFiles = try Self.formFiles(row.decode(forColumn: "form"), sources)
                items.append(
                    ItemStatus(
                        position: itemPosition, source: formFiles.shownSource ?? FilePath(bytes: location.source),
                        destination: try kind.remotePath(location.destination), isFolder: kind.isFolder, state: .pending,
                        bytesTotal: try Self.size(row), bytesDone: 0, formFiles: formFiles))
                itemPosition += 1
            }
            return items
        }
    }

    /// Returns the size in bytes; nil while it is unknown.
    private static func size(_ row: StoredRow) throws -> Int64? {
        try row.decode(Bool.self, forColumn: "unsized") ? nil : bounded(try row.decode(forColumn: "size"))
    }

    private static func bounded(_ size: Int64) -> Int64 { min(max(0, size), FileSize.maximum) }

    private static func itemStatus(
        _ row: StoredRow, _ paths: inout DirectoryPaths, _ sources: SourceFolders, in db: Database
    ) throws -> ItemStatus {
        let kind = ItemKind(rawValue: try row.decode(forColumn: "kind")) ?? .file
        let location = try paths.location(
            kind, directory: try row.decode(forColumn: "directory"), source: try row.decode(forColumn: "source"),
            destination: try row.decode(forColumn: "destination"), in: db)
        let receipt: TransferReceipt? = try? StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "receipt"))
        // A file with an invalid state is treated as pending; see ``pendingFiles(of:after:limit:)``.
        let state = ItemState(rawValue: try row.decode(forColumn: "state")) ?? .pending
        let formFiles = Self.formFiles(try row.decode(forColumn: "form"), sources)
        return ItemStatus(
            position: try row.decode(forColumn: "position"),
            source: receipt?.localPath ?? formFiles.shownSource ?? FilePath(bytes: location.source),
            destination: try kind.remotePath(location.destination), isFolder: kind.isFolder, state: state,
            bytesTotal: try Self.size(row),
            bytesDone: bounded(
                try state == .completed ? row.decode(forColumn: "size") : row.decode(Int64?.self, forColumn: "confirmed") ?? 0),
            remoteURL: receipt?.remoteURL,
            checksum: receipt?.checksum,
            partialExpiresAt: state == .completed ? nil : try row.decode(Int64?.self, forColumn: "expires_at").map(StoreCoding.date),
            serverResponse: receipt?.serverResponse,
            warnings: receipt?.warnings ?? [],
            error: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "error")), formFiles: formFiles)
    }
}
