import Foundation
import GRDB
package import SystemPackage
package import TransferCore

/// A file as a run needs it.
package struct PendingFile: Sendable {
    package var position: Int64
    /// What is sent, or where what is received goes.
    package var source: FilePath
    /// The remote name.
    package var destination: [UInt8]
    /// Nil while it is not known.
    package var size: Int64?
    package var generation: Int64
    /// The most that a checkpoint at any endpoint vouches for.
    package var confirmed: Int64
    /// Where it already has a place at the server.
    package var uploadPlace: Capability?
    package var kind = ItemKind.file
    /// Of a file that was found in a folder, what may lead to it; nil if all links may.
    package var confinement: SourceConfinement?
    /// Of a download, the part of ``source`` that is below the session's folder.
    package var localName: FilePath?
    /// Whether it was found in a remote folder.
    package var isListed = false
}

/// A checkpoint with what it was made of.
package struct StoredCheckpoint: Sendable {
    package var checkpoint: Checkpoint
    /// Of the file that it was made of; nil of a download.
    package var identity: SourceIdentity?
}

extension QueueStore {
    /// A size or count that no file exceeds; 0 for NULL. Damaged ones are bounded before anything is added to them.
    static func bytes(_ row: StoredRow, atIndex index: Int) throws -> Int64 {
        min(max(0, try row.decode(Int64?.self, atIndex: index) ?? 0), FileSize.maximum)
    }

    /// A position, sequence or number that others are counted on from.
    ///
    /// - Throws: `DatabaseError` for one that no session comes to.
    static func position(_ row: StoredRow, atIndex index: Int) throws -> Int64 {
        let position: Int64 = try row.decode(atIndex: index)
        guard (0...greatestPosition).contains(position) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row has a position that no session comes to")
        }
        return position
    }

    /// The next files of a session that are not finished, in order; only those of its manifest, see ``FolderExpansion``. One whose
    /// state makes no sense is not finished, so that no session completes without it.
    package func pendingFiles(of key: SessionKey, after position: Int64, limit: Int) async throws -> [PendingFile] {
        try await read { [sources] db in
            var paths = DirectoryPaths(of: key, sources)
            return try StoredRow.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT position, kind, directory, source, destination, size, generation,
                            (SELECT max(confirmed) FROM checkpoint
                                WHERE checkpoint.session = file.session AND checkpoint.position = file.position),
                            upload_url, unsized, symbolic_links
                        FROM file
                        WHERE session = ? AND position > ? AND state NOT IN ('completed', 'failed', 'skipped') ORDER BY position LIMIT ?
                        """),
                arguments: [key, position, limit]
            ).map { row in
                let kind = ItemKind(rawValue: try row.decode(atIndex: 1)) ?? .file
                let location = try paths.location(
                    kind, directory: try row.decode(atIndex: 2), source: try row.decode(atIndex: 3),
                    destination: try row.decode(atIndex: 4), in: db)
                let isUnsized: Bool = try row.decode(atIndex: 9)
                return PendingFile(
                    position: try Self.position(row, atIndex: 0), source: FilePath(bytes: location.source),
                    destination: location.destination,
                    size: isUnsized ? nil : try Self.bytes(row, atIndex: 5),
                    generation: try Self.bytes(row, atIndex: 6), confirmed: (try? Self.bytes(row, atIndex: 7)) ?? 0,
                    uploadPlace: try row.decode(String?.self, atIndex: 8).map(Capability.init),
                    kind: kind, confinement: location.confinement(try row.decode(String?.self, atIndex: 10)),
                    localName: kind == .download ? FilePath(bytes: try paths.localName(of: location, in: db)) : nil,
                    isListed: try kind == .download && row.decode(Int64?.self, atIndex: 2) != nil)
            }
        }
    }

    /// What an earlier attempt of this life of a file left at an endpoint.
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
            return StoredCheckpoint(
                checkpoint: Checkpoint(
                    data: try row.decode(atIndex: 0), confirmed: try Self.bytes(row, atIndex: 1),
                    expiresAt: try row.decode(Int64?.self, atIndex: 3).map(StoreCoding.date)),
                identity: try Self.identity(try row.decode(String.self, atIndex: 2)))
        }
    }

    /// The identity of a source as it is stored; `null` stands for none.
    static func identity(_ text: String) throws -> SourceIdentity? {
        text == "null" ? nil : try StoreCoding.decode(from: text)
    }

    /// The error of the first file of a session that failed.
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

    /// The source of the first file of a session that failed.
    static func firstFailedItem(of key: SessionKey, _ sources: SourceFolders, in db: Database) throws -> FilePath? {
        guard
            let row = try StoredRow.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT kind, directory, source, destination FROM file INDEXED BY file_failed
                        WHERE session = ? AND state = 'failed' ORDER BY position LIMIT 1
                        """), arguments: [key])
        else { return nil }
        var paths = DirectoryPaths(of: key, sources)
        return FilePath(
            bytes: try paths.location(
                ItemKind(rawValue: try row.decode(atIndex: 0)) ?? .file, directory: try row.decode(atIndex: 1),
                source: try row.decode(atIndex: 2), destination: try row.decode(atIndex: 3), in: db
            ).source)
    }
}
