import Foundation
import GRDB
package import SystemPackage
import TransferCore

/// A session as it is stored; what only the running queue knows is added by ``TransferQueue``.
package struct SessionRecord: Sendable {
    package var key: SessionKey
    package var status: SessionStatus
    package var options: SessionOptions
    /// Where a download goes.
    package var folder: FilePath?
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
        try await read { [sources] db in
            var records: [SessionRecord] = []
            var unreadable: [SessionKey: String] = [:]
            let statement = try db.cachedStatement(
                sql: """
                    SELECT session.*, schedule.id, schedule.state, account.name AS account_name,
                        (SELECT json_group_array(tag) FROM session_tag WHERE session_tag.session = session.key) AS tags,
                        (SELECT sum(most) FROM (SELECT max(confirmed) AS most FROM checkpoint
                            WHERE checkpoint.session = session.key GROUP BY position)) AS bytes_confirmed,
                        (SELECT count(*) FROM file WHERE file.session = session.key AND unsized = 1 AND file.state = 'pending')
                        + (SELECT count(*) FROM item WHERE item.session = session.key AND unsized = 1) AS files_unsized
                    FROM session JOIN schedule ON schedule.session = session.key JOIN account ON account.key = session.account
                    WHERE session.key = ?
                    """)
            for key in keys {
                guard let row = try Row.fetchOne(statement, arguments: [key]) else {
                    unreadable[key] = "The session in row \(key) is not whole."
                    continue
                }
                do {
                    var record = try Self.sessionRecord(row, sources)
                    if record.status.statistics.filesFailed > 0 {
                        record.status.failedItem = try Self.firstFailedItem(of: key, sources, in: db)
                    }
                    records.append(record)
                } catch {
                    unreadable[key] = "The session in row \(key) can't be read: \(error)"
                }
            }
            return (records, unreadable)
        }
    }

    /// Figures are added up; damaged ones must not go beyond what a number holds.
    static let mostBytes: Int64 = 1 << 60

    private static func sessionRecord(_ row: Row, _ sources: SourceFolders) throws -> SessionRecord {
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
        var statistics = SessionStatistics(
            files: try row.decode(forColumn: "files"), filesDone: try row.decode(forColumn: "files_done"),
            filesFailed: try row.decode(forColumn: "files_failed"), bytesTotal: total, bytesDone: done, bytesSent: done,
            filesUnsized: try row.decode(forColumn: "files_unsized"))
        statistics.setElapsed(Double(min(max(0, try row.decode(Int64.self, forColumn: "milliseconds")), mostBytes)) / 1_000)
        let status = SessionStatus(
            id: id, index: 0, state: state, name: try row.decode(forColumn: "name"), direction: direction,
            account: try row.decode(forColumn: "account_name"), endpoint: try row.decode(forColumn: "endpoint"),
            transport: try row.decode(String?.self, forColumn: "transport").map(TransportID.init(rawValue:)),
            tags: try StoreCoding.decode(from: row.decode(forColumn: "tags")), context: try row.decode(forColumn: "context"),
            statistics: statistics,
            attempts: try row.decode(forColumn: "attempts"),
            error: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "error")),
            createdAt: StoreCoding.date(try row.decode(forColumn: "created_at")),
            startedAt: try row.decode(Int64?.self, forColumn: "started_at").map(StoreCoding.date),
            endedAt: try row.decode(Int64?.self, forColumn: "ended_at").map(StoreCoding.date))
        return SessionRecord(
            key: try row.decode(forColumn: "key"), status: status,
            options: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, forColumn: "options")) ?? SessionOptions(),
            folder: try row.decode(Data?.self, forColumn: "folder").map { FilePath(bytes: sources.path(.folder, [UInt8]($0))) })
    }
}
