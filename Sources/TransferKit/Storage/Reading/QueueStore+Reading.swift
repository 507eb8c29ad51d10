import Foundation
import GRDB
package import SystemPackage
import TransferCore

/// The stored form of a session. ``TransferQueue`` adds the data of the running queue.
package struct SessionRecord: Sendable {
    package var key: SessionKey
    package var status: SessionStatus
    package var options: SessionOptions
    /// The local folder for a download; nil for an upload.
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

    /// Returns the sessions with these keys, in no particular order. Omits missing and unreadable sessions.
    package func sessions(_ keys: [SessionKey]) async throws -> [SessionRecord] {
        try await readSessions(keys).records
    }

    /// Returns the sessions with these keys, in no particular order.
    ///
    /// - Returns: The readable sessions, and for each other key, the reason why its session can't be read.
    func readSessions(_ keys: [SessionKey]) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        do {
            return try await querySessions(keys, SessionQueryRow.query)
        } catch let error as QueueError where error.code == .storageDamaged {
            guard keys.count > 1 else { return try await readBareSessions(keys) }
            // A page of the database is damaged. Most sessions may be on other pages, so read each half of the keys separately.
            let half = keys.count / 2
            let (first, second) = (try await readSessions(Array(keys[..<half])), try await readSessions(Array(keys[half...])))
            return (first.records + second.records, first.unreadable.merging(second.unreadable) { $1 })
        }
    }

    /// Reads sessions without their tags and the numbers of their unsized files (``SessionQueryRow/bareQuery``), because the tables with
    /// this data may be damaged.
    private func readBareSessions(
        _ keys: [SessionKey]
    ) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        do {
            return try await querySessions(keys, SessionQueryRow.bareQuery)
        } catch let error as QueueError where error.code == .storageDamaged {
            return ([], Dictionary(uniqueKeysWithValues: keys.map { ($0, "The session in row \($0) can't be read: \(error)") }))
        }
    }

    private func querySessions(
        _ keys: [SessionKey], _ query: String
    ) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        try await read { [sources] db in
            var records: [SessionRecord] = []
            var unreadable: [SessionKey: String] = [:]
            var missing = Set(keys)
            let statement = try db.cachedStatement(sql: query)
            let rows = try StoredRow.fetchCursor(statement, arguments: ["[\(keys.map(String.init).joined(separator: ","))]"])
            while let row = try rows.next() {
                let row = SessionQueryRow(row: row)
                let key = try row.value(.key, as: SessionKey.self)
                missing.remove(key)
                do {
                    var record = try row.sessionRecord(sources)
                    if record.status.statistics.filesFailed > 0 {
                        do {
                            record.status.failedItem = try Self.firstFailedItem(of: key, sources, in: db)
                        } catch is DatabaseError {
                            // The damage may be in the index of failed files, which all sessions share, so this session stays out of
                            // quarantine.
                        }
                    }
                    records.append(record)
                } catch {
                    unreadable[key] = "The session in row \(key) can't be read: \(error)"
                }
            }
            for key in missing { unreadable[key] = "The session in row \(key) is incomplete." }
            return (records, unreadable)
        }
    }

    /// The maximum number of bytes of a session. Larger values in damaged rows are reduced to this maximum, so that sums don't overflow.
    static let maximumBytes = FileSize.sessionMaximum
    /// The limit to which stored numbers of attempts are reduced, so that sums don't overflow. A larger number means that the database is
    /// damaged.
    static let maximumStoredAttempts: Int64 = 1 << 31
    /// The greatest valid position or sequence. New rows get numbers above the highest stored number. This limit leaves room for new numbers even if
    /// a row is damaged.
    static let greatestPosition: Int64 = 1 << 62
}
