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

    /// The sessions with these keys, in no particular order; those that don't exist or can't be read are left out.
    package func sessions(_ keys: [SessionKey]) async throws -> [SessionRecord] {
        try await readSessions(keys).records
    }

    /// The sessions with these keys, in no particular order.
    ///
    /// - Returns: Those that can be read, and why the others can't.
    func readSessions(_ keys: [SessionKey]) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        try await read { db in
            var records: [SessionRecord] = []
            var unreadable: [SessionKey: String] = [:]
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
                guard let row = try Row.fetchOne(statement, arguments: [key]) else {
                    unreadable[key] = "The session in row \(key) is not whole."
                    continue
                }
                do {
                    records.append(try Self.sessionRecord(row))
                } catch {
                    unreadable[key] = "The session in row \(key) can't be read: \(error)"
                }
            }
            return (records, unreadable)
        }
    }

    /// Figures are added up; damaged ones must not go beyond what a number holds.
    private static let mostBytes: Int64 = 1 << 60

    private static func sessionRecord(_ row: Row) throws -> SessionRecord {
        guard
            let id = SessionID(data: try row.decode(forColumn: "id")),
            let state = SessionState(rawValue: try row.decode(forColumn: "state")),
            let direction = TransferDirection(rawValue: try row.decode(forColumn: "direction"))
        else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "it has no valid ID, state or direction")
        }
        let total: Int64 = try row.decode(forColumn: "bytes_total")
        let (done, isBeyond) = try row.decode(Int64.self, forColumn: "bytes_done")
            .addingReportingOverflow(row.decode(Int64?.self, forColumn: "bytes_confirmed") ?? 0)
        guard !isBeyond, (0...mostBytes).contains(done), (0...mostBytes).contains(total) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "it has more bytes than there can be")
        }
        let status = SessionStatus(
            id: id, index: 0, state: state, name: try row.decode(forColumn: "name"), direction: direction,
            account: try row.decode(forColumn: "account_name"), endpoint: try row.decode(forColumn: "endpoint"),
            transport: try row.decode(String?.self, forColumn: "transport").map(TransportID.init(rawValue:)),
            tags: try StoreCoding.decode(from: row.decode(forColumn: "tags")), context: try row.decode(forColumn: "context"),
            statistics: SessionStatistics(
                files: try row.decode(forColumn: "files"), filesDone: try row.decode(forColumn: "files_done"),
                filesFailed: try row.decode(forColumn: "files_failed"), bytesTotal: total,
                bytesDone: done, bytesSent: done),
            attempts: try row.decode(forColumn: "attempts"),
            error: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "error")),
            failedItem: try row.decode(Data?.self, forColumn: "failed_source").map { FilePath(bytes: $0) },
            createdAt: StoreCoding.date(try row.decode(forColumn: "created_at")),
            startedAt: try row.decode(Int64?.self, forColumn: "started_at").map(StoreCoding.date),
            endedAt: try row.decode(Int64?.self, forColumn: "ended_at").map(StoreCoding.date))
        return SessionRecord(
            key: try row.decode(forColumn: "key"), status: status,
            options: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "options")) ?? SessionOptions())
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
                let receipt: TransferReceipt? = try? StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "receipt"))
                // What is neither completed nor failed is sent, see ``pendingFiles(of:after:limit:)``.
                let state = ItemState(rawValue: try row.decode(forColumn: "state")) ?? .pending
                return ItemStatus(
                    position: try row.decode(forColumn: "position"),
                    source: FilePath(bytes: try row.decode(Data.self, forColumn: "source")),
                    destination: try RemotePath(bytes: row.decode(Data.self, forColumn: "destination")), state: state,
                    bytesTotal: try row.decode(forColumn: "size"),
                    bytesDone: try state == .completed
                        ? row.decode(forColumn: "size") : row.decode(Int64?.self, forColumn: "confirmed") ?? 0,
                    remoteURL: receipt?.remoteURL, checksum: receipt?.checksum,
                    error: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "error")))
            }
        }
    }

    /// The next files of a session that are not finished, in order. One whose state makes no sense is not, so that no session completes
    /// without it.
    package func pendingFiles(of key: SessionKey, after position: Int64, limit: Int) async throws -> [PendingFile] {
        try await read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT position, source, destination, size, generation,
                            (SELECT max(confirmed) FROM checkpoint
                                WHERE checkpoint.session = file.session AND checkpoint.position = file.position)
                        FROM file
                        WHERE session = ? AND position > ? AND state NOT IN ('completed', 'failed') ORDER BY position LIMIT ?
                        """),
                arguments: [key, position, limit]
            ).map { row in
                PendingFile(
                    position: try row.decode(atIndex: 0), source: FilePath(bytes: try row.decode(Data.self, atIndex: 1)),
                    destination: [UInt8](try row.decode(Data.self, atIndex: 2)), size: try Self.bytes(row, atIndex: 3),
                    generation: try Self.bytes(row, atIndex: 4), confirmed: try Self.bytes(row, atIndex: 5))
            }
        }
    }

    /// A number of which there can't be less than none; 0 if there is none.
    private static func bytes(_ row: Row, atIndex index: Int) throws -> Int64 {
        min(max(0, try row.decode(Int64?.self, atIndex: index) ?? 0), mostBytes)
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
                checkpoint: Checkpoint(data: try row.decode(atIndex: 0), confirmed: try row.decode(atIndex: 1)),
                identity: try StoreCoding.decode(from: row.decode(String.self, atIndex: 2)))
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
