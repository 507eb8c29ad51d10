import Foundation
import GRDB
package import SystemPackage
package import TransferCore

/// An unfinished file of a session, with the data that a run needs.
package struct PendingFile: Sendable {
    package var position: Int64
    /// The local file to send, or the local destination of a download.
    package var source: FilePath
    /// The complete remote path.
    package var destination: [UInt8]
    /// The size in bytes; nil while it is unknown.
    package var size: Int64?
    /// The number of the file's current start at byte 0; the first start has the number 1. Checkpoints and unfinished content of earlier
    /// starts are not used again.
    package var generation: Int64
    /// The largest number of bytes that any of the file's checkpoints covers, regardless of the endpoint.
    package var confirmed: Int64
    /// The URL of an existing upload on the server; nil if there is no such upload.
    package var uploadCapability: Capability?
    /// The URL at which the upload is created; nil for the creation URL of the session.
    package var creationCapability: Capability?
    package var kind = ItemKind.file
    /// Which symbolic links the path of the file may contain; nil for no restriction.
    package var confinement: SourceConfinement?
    /// For a download, ``source`` relative to the session's local folder; nil for an upload.
    package var localName: FilePath?
    /// Whether the file was found in a remote folder.
    package var isListed = false

    /// The local path as shown in messages; the remote name if the local file is in the ``Spool``.
    var shownName: String { kind.isSpooled ? String(decoding: destination, as: UTF8.self) : source.string }
}

/// A checkpoint with the identity of the source file.
package struct StoredCheckpoint: Sendable {
    package var checkpoint: Checkpoint
    /// The identity of the file that was sent; nil for a download.
    package var identity: SourceIdentity?
}

extension QueueStore {
    /// Returns a size or count, limited to the maximum size of a file; 0 for NULL. The limit prevents overflows when damaged values are
    /// added.
    static func bytes(_ row: StoredRow, atIndex index: Int) throws -> Int64 {
        min(max(0, try row.decode(Int64?.self, atIndex: index) ?? 0), FileSize.maximum)
    }

    /// Returns a stored position, sequence or number. Stored numbers must leave room for the greater numbers of new rows.
    ///
    /// - Throws: `DatabaseError` for a value that is negative, or too large for any session.
    static func position(_ row: StoredRow, atIndex index: Int) throws -> Int64 {
        let position: Int64 = try row.decode(atIndex: index)
        guard (0...greatestPosition).contains(position) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row has an impossible position")
        }
        return position
    }

    /// Returns the next unfinished files in a session's manifest, the stored list of its files (``FolderExpansion``), in order. A file with
    /// an invalid state counts as unfinished, so that its session can't complete without this file.
    package func pendingFiles(of key: SessionKey, after position: Int64, limit: Int) async throws -> [PendingFile] {
        try await read { [sources] db in try Self.pendingFiles(of: key, after: position, limit: limit, sources, in: db) }
    }

    /// - Throws: `DatabaseError`, for example if the positions are not in order, as in a damaged table.
    static func pendingFiles(
        of key: SessionKey, after position: Int64, limit: Int, _ sources: SourceFolders, in db: Database
    ) throws -> [PendingFile] {
        var paths = DirectoryPaths(of: key, sources)
        var last = position
        return try StoredRow.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT position, kind, directory, source, destination, size, generation,
                        (SELECT max(confirmed) FROM checkpoint
                            WHERE checkpoint.session = file.session AND checkpoint.position = file.position),
                        upload_url, unsized, symbolic_links, creation_url
                    FROM file
                    WHERE session = ? AND position > ? AND state NOT IN ('completed', 'failed', 'skipped') ORDER BY position LIMIT ?
                    """),
            arguments: [key, position, limit]
        ).map { row in
            let position = try Self.position(row, atIndex: 0)
            guard position > last else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(key) has several files at one position")
            }
            last = position
            let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
            let location = try paths.location(
                kind, directory: try row.decode(atIndex: 2), source: try row.decode(atIndex: 3),
                destination: try row.decode(atIndex: 4), in: db)
            let isUnsized: Bool = try row.decode(atIndex: 9)
            let source = FilePath(bytes: location.source)
            return PendingFile(
                position: position, source: source, destination: location.destination,
                size: isUnsized ? nil : try Self.bytes(row, atIndex: 5),
                generation: try Self.bytes(row, atIndex: 6), confirmed: (try? Self.bytes(row, atIndex: 7)) ?? 0,
                uploadCapability: try row.decode(String?.self, atIndex: 8).map(Capability.init),
                creationCapability: try row.decode(String?.self, atIndex: 11).map(Capability.init),
                kind: kind, confinement: paths.confinement(of: source, try row.decode(String?.self, atIndex: 10)),
                localName: kind == .download ? FilePath(bytes: try paths.localName(of: location, in: db)) : nil,
                isListed: try kind == .download && row.decode(Int64?.self, atIndex: 2) != nil)
        }
    }

    /// Returns the checkpoint of a file at an endpoint; nil if no attempt of this generation stored a checkpoint.
    package func checkpoint(session: SessionKey, position: Int64, endpoint: String, generation: Int64) async throws -> StoredCheckpoint? {
        try await read { db in
            guard
                let row = try StoredRow.fetchOne(
                    db.cachedStatement(
                        sql: """
                            SELECT data, confirmed, identity, expires_at FROM checkpoint
                            WHERE session = ? AND position = ? AND endpoint = ? AND generation = ?
                            """),
                    arguments: [session, position, endpoint, generation])
            else { return nil }
            return try Self.storedCheckpoint(row, from: 0)
        }
    }

    /// Decodes a checkpoint from the columns `data`, `confirmed`, `identity` and `expires_at`.
    ///
    /// - Parameter index: The index of the column `data` in the row.
    static func storedCheckpoint(_ row: StoredRow, from index: Int) throws -> StoredCheckpoint {
        StoredCheckpoint(
            checkpoint: Checkpoint(
                data: try row.decode(atIndex: index), confirmed: try bytes(row, atIndex: index + 1),
                expiresAt: try row.decode(Int64?.self, atIndex: index + 3).map(StoreCoding.date)),
            identity: try identity(try row.decode(atIndex: index + 2)))
    }

    /// Decodes the identity of a source; returns nil for the text `null`.
    static func identity(_ text: String) throws -> SourceIdentity? {
        text == "null" ? nil : try StoreCoding.decode(from: text)
    }

    /// Returns the error of the first failed file of a session; nil if no file failed.
    package func firstFailure(of key: SessionKey) async throws -> TransferError? {
        try await read { db in
            try StoreCoding.decodeIfPresent(
                from: String.fetchOne(
                    db.cachedStatement(
                        sql: """
                            SELECT error FROM file INDEXED BY file_failed
                            WHERE session = ? AND state = 'failed' ORDER BY position LIMIT 1
                            """), arguments: [key]))
        }
    }

    /// Returns the source of the first failed file of a session; if the file is a form, the first local file in the form. Nil if no file
    /// failed.
    static func firstFailedItem(of key: SessionKey, _ sources: SourceFolders, in db: Database) throws -> FilePath? {
        guard
            let row = try StoredRow.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT kind, directory, source, destination, form FROM file INDEXED BY file_failed
                        WHERE session = ? AND state = 'failed' ORDER BY position LIMIT 1
                        """), arguments: [key])
        else { return nil }
        if let file = formFiles(try row.decode(atIndex: 4), sources).shownSource { return file }
        var paths = DirectoryPaths(of: key, sources)
        return FilePath(
            bytes: try paths.location(
                ItemKind(rawValue: try row.decode(atIndex: 0)) ?? .file, directory: try row.decode(atIndex: 1),
                source: try row.decode(atIndex: 2), destination: try row.decode(atIndex: 3), in: db
            ).source)
    }
}
