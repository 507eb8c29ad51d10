import Foundation
import GRDB
import TransferCore

/// A session as it is stored; what only the running queue knows is added by ``TransferQueue``.
package struct SessionRecord: Sendable {
    package var key: SessionKey
    package var status: SessionStatus
    package var options: SessionOptions
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
        try await read { [sources] db in
            var records: [SessionRecord] = []
            let statement = try db.cachedStatement(
                sql: """
                    SELECT session.*, schedule.id, schedule.state, account.name AS account_name,
                        (SELECT json_group_array(tag) FROM session_tag WHERE session_tag.session = session.key) AS tags,
                        (SELECT sum(most) FROM (SELECT max(confirmed) AS most FROM checkpoint
                            WHERE checkpoint.session = session.key GROUP BY position)) AS bytes_confirmed
                    FROM session JOIN schedule ON schedule.session = session.key JOIN account ON account.key = session.account
                    WHERE session.key = ?
                    """)
            for key in keys {
                guard let row = try Row.fetchOne(statement, arguments: [key]) else { continue }
                var record = try Self.sessionRecord(row)
                if record.status.statistics.filesFailed > 0 {
                    record.status.failedItem = try Self.firstFailedItem(of: key, sources, in: db)
                }
                records.append(record)
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
            createdAt: StoreCoding.date(row["created_at"]), startedAt: (row["started_at"] as Int64?).map(StoreCoding.date),
            endedAt: (row["ended_at"] as Int64?).map(StoreCoding.date))
        return SessionRecord(
            key: row["key"], status: status, options: try StoreCoding.decodeIfPresent(from: row["options"] as String?) ?? SessionOptions())
    }
}
