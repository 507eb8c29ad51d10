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
        do {
            return try await readSessionsAtOnce(keys, SessionRow.query)
        } catch let error as QueueError where error.code == .storageDamaged {
            guard keys.count > 1 else { return try await readBareSessions(keys) }
            // A page is damaged; most sessions may be on others.
            let half = keys.count / 2
            let (first, second) = (try await readSessions(Array(keys[..<half])), try await readSessions(Array(keys[half...])))
            return (first.records + second.records, first.unreadable.merging(second.unreadable) { $1 })
        }
    }

    /// A session whose own rows are sound is shown without what is not.
    private func readBareSessions(
        _ keys: [SessionKey]
    ) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        do {
            return try await readSessionsAtOnce(keys, SessionRow.bareQuery)
        } catch let error as QueueError where error.code == .storageDamaged {
            return ([], Dictionary(uniqueKeysWithValues: keys.map { ($0, "The session in row \($0) can't be read: \(error)") }))
        }
    }

    private func readSessionsAtOnce(
        _ keys: [SessionKey], _ query: String
    ) async throws -> (records: [SessionRecord], unreadable: [SessionKey: String]) {
        try await read { [sources] db in
            var records: [SessionRecord] = []
            var unreadable: [SessionKey: String] = [:]
            var missing = Set(keys)
            let statement = try db.cachedStatement(sql: query)
            let rows = try StoredRow.fetchCursor(statement, arguments: ["[\(keys.map(String.init).joined(separator: ","))]"])
            while let row = try rows.next() {
                let row = SessionRow(row: row)
                let key = try row.value(.key, as: SessionKey.self)
                missing.remove(key)
                do {
                    var record = try row.record(sources)
                    if record.status.statistics.filesFailed > 0 {
                        do {
                            record.status.failedItem = try Self.firstFailedItem(of: key, sources, in: db)
                        } catch is DatabaseError {
                            // Damage of the database, maybe of an index that all failed sessions share, is no reason to set one aside.
                        }
                    }
                    records.append(record)
                } catch {
                    unreadable[key] = "The session in row \(key) can't be read: \(error)"
                }
            }
            for key in missing { unreadable[key] = "The session in row \(key) is not whole." }
            return (records, unreadable)
        }
    }

    /// Figures are added up; damaged ones must not go beyond what a number holds.
    static let mostBytes = FileSize.sessionMaximum
    /// No session makes more attempts; a greater number can only be damage.
    static let mostAttempts: Int64 = 1 << 31
    /// Positions and sequences grow from what is stored; a damaged row must leave them room.
    static let greatestPosition: Int64 = 1 << 62
}
