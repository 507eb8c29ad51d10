import Foundation
import GRDB
package import SystemPackage
package import TransferCore

/// A session as it is stored; what only the running queue knows is added by ``TransferQueue``.
package struct SessionRecord: Sendable {
    package var key: SessionKey
    package var status: SessionStatus
    package var options: SessionOptions
}

/// A file as a run needs it.
package struct PendingFile: Sendable {
    package var position: Int64
    package var source: FilePath
    package var destination: [UInt8]
    package var size: Int64
    package var generation: Int64
    /// The most that a checkpoint at any endpoint vouches for.
    package var confirmed: Int64
}

/// A checkpoint with what it was made of.
package struct StoredCheckpoint: Sendable {
    package var checkpoint: Checkpoint
    package var identity: SourceIdentity
}

extension QueueStore {
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do {
            return try await pool.read(body)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }

    /// The sessions with these keys, in no particular order; those that don't exist are left out.
    package func sessions(_ keys: [SessionKey]) async throws -> [SessionRecord] {
        try await read { db in
            var records: [SessionRecord] = []
            let statement = try db.cachedStatement(
                sql: """
                    SELECT session.*, schedule.id, schedule.state, account.name AS account_name,
                        (SELECT json_group_array(tag) FROM session_tag WHERE session_tag.session = session.key) AS tags,
                        (SELECT sum(most) FROM (SELECT max(confirmed) AS most FROM checkpoint
                            WHERE checkpoint.session = session.key GROUP BY position)) AS bytes_confirmed,
                        CASE WHEN files_failed > 0 THEN
                            (SELECT source FROM file WHERE file.session = session.key AND file.state = 'failed' ORDER BY position LIMIT 1)
                        END AS failed_source
                    FROM session JOIN schedule ON schedule.session = session.key JOIN account ON account.key = session.account
                    WHERE session.key = ?
                    """)
            for key in keys {
                if let row = try Row.fetchOne(statement, arguments: [key]) { records.append(try Self.sessionRecord(row)) }
            }
            return records
        }
    }

    private static func sessionRecord(_ row: Row) throws -> SessionRecord {
        guard
            let id = SessionID(data: row["id"]), let state = SessionState(rawValue: row["state"]),
            let direction = TransferDirection(rawValue: row["direction"])
        else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "session \(row["key"] as Int64) has no valid ID, state or direction")
        }
        let done: Int64 = row["bytes_done"] + (row["bytes_confirmed"] as Int64? ?? 0)
        let status = SessionStatus(
            id: id, index: 0, state: state, name: row["name"], direction: direction, account: row["account_name"],
            endpoint: row["endpoint"],
            transport: (row["transport"] as String?).map(TransportID.init(rawValue:)),
            tags: try StoreCoding.decode(from: row["tags"] as String),
            context: row["context"],
            statistics: SessionStatistics(
                files: row["files"], filesDone: row["files_done"], filesFailed: row["files_failed"], bytesTotal: row["bytes_total"],
                bytesDone: done, bytesSent: done),
            attempts: row["attempts"], error: try StoreCoding.decodeIfPresent(from: row["error"] as String?),
            failedItem: (row["failed_source"] as Data?).map { FilePath(bytes: $0) },
            createdAt: StoreCoding.date(row["created_at"]), startedAt: (row["started_at"] as Int64?).map(StoreCoding.date),
            endedAt: (row["ended_at"] as Int64?).map(StoreCoding.date))
        return SessionRecord(key: row["key"], status: status, options: try StoreCoding.decodeIfPresent(from: row["options"] as String?) ?? SessionOptions())
    }

    /// Items of a session in order, from a position on.
    package func items(of key: SessionKey, from position: Int64, limit: Int) async throws -> [ItemStatus] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT file.*, (SELECT max(confirmed) FROM checkpoint
                        WHERE checkpoint.session = file.session AND checkpoint.position = file.position) AS confirmed
                    FROM file WHERE session = ? AND position >= ? ORDER BY position LIMIT ?
                    """,
                arguments: [key, position, limit]
            ).map { row in
                let receipt: TransferReceipt? = try StoreCoding.decodeIfPresent(from: row["receipt"] as String?)
                let state = ItemState(rawValue: row["state"]) ?? .failed
                return ItemStatus(
                    position: row["position"], source: FilePath(bytes: row["source"] as Data),
                    destination: try RemotePath(bytes: row["destination"] as Data), state: state, bytesTotal: row["size"],
                    bytesDone: state == .completed ? row["size"] : row["confirmed"] ?? 0, remoteURL: receipt?.remoteURL,
                    checksum: receipt?.checksum, error: try StoreCoding.decodeIfPresent(from: row["error"] as String?))
            }
        }
    }

    /// The next files of a session that are not finished, in order.
    package func pendingFiles(of key: SessionKey, after position: Int64, limit: Int) async throws -> [PendingFile] {
        try await read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT position, source, destination, size, generation,
                            (SELECT max(confirmed) FROM checkpoint
                                WHERE checkpoint.session = file.session AND checkpoint.position = file.position)
                        FROM file
                        WHERE session = ? AND position > ? AND state = 'pending' ORDER BY position LIMIT ?
                        """),
                arguments: [key, position, limit]
            ).map { row in
                PendingFile(
                    position: row[0], source: FilePath(bytes: row[1] as Data), destination: [UInt8](row[2] as Data), size: row[3],
                    generation: row[4], confirmed: row[5] ?? 0)
            }
        }
    }

    /// What an earlier attempt of this life of a file left at an endpoint.
    package func checkpoint(session: SessionKey, position: Int64, endpoint: String, generation: Int64) async throws -> StoredCheckpoint? {
        try await read { db in
            guard
                let row = try Row.fetchOne(
                    db.cachedStatement(
                        sql: """
                            SELECT data, confirmed, identity FROM checkpoint
                            WHERE session = ? AND position = ? AND endpoint = ? AND generation = ?
                            """),
                    arguments: [session, position, endpoint, generation])
            else { return nil }
            return StoredCheckpoint(
                checkpoint: Checkpoint(data: row[0], confirmed: row[1]), identity: try StoreCoding.decode(from: row[2] as String))
        }
    }

    /// The error of the first file of a session that failed.
    package func firstFailure(of key: SessionKey) async throws -> TransferError? {
        try await read { db in
            try StoreCoding.decodeIfPresent(
                from: String.fetchOne(
                    db, sql: "SELECT error FROM file WHERE session = ? AND state = 'failed' ORDER BY position LIMIT 1", arguments: [key]))
        }
    }
}
