import GRDB

/// The remaining work of a session.
struct RemainingWork: Sendable, Equatable {
    /// The remaining bytes; nil while the session has folders that have not been read yet, or files of unknown size.
    var bytes: Int64?
    /// The session's own rate limit in bytes per second; nil for no limit.
    var rateLimit: Int64?
}

extension QueueStore {
    /// Returns the remaining work of each session, by key. Failed files do not count as remaining.
    func remaining(of keys: [SessionKey]) async throws -> [SessionKey: RemainingWork] {
        try await read { db in
            let maximumBytes = Self.maximumBytes
            let statement = try db.cachedStatement(
                sql: """
                    SELECT bytes_total - bytes_done - failed, is_unknown, limited FROM (
                        SELECT \(SessionFigures.columns),
                            CAST(min((SELECT total(\(SessionFigures.clamped("size"))) FROM file INDEXED BY file_failed
                                WHERE file.session = session.key AND state = 'failed'), \(maximumBytes)) AS INTEGER) AS failed,
                            EXISTS (SELECT 1 FROM item WHERE item.session = session.key AND (kind IN ('folder', 'remoteFolder') OR unsized = 1))
                                OR EXISTS (SELECT 1 FROM file INDEXED BY file_unsized
                                    WHERE file.session = session.key AND unsized = 1 AND state = 'pending')
                                AS is_unknown,
                            CASE WHEN json_valid(options) THEN json_extract(options, '$.rateLimit') END AS limited
                        FROM session WHERE session.key = ?)
                    """)
            var work: [SessionKey: RemainingWork] = [:]
            for key in keys {
                guard let row = try StoredRow.fetchOne(statement, arguments: [key]) else { continue }
                let isUnknown: Bool = try row.decode(atIndex: 1)
                // A limit that is not a number means that the database is damaged.
                let limit = Int64.fromDatabaseValue(try row.value(atIndex: 2)).flatMap { $0 > 0 ? $0 : nil }
                work[key] = RemainingWork(bytes: isUnknown ? nil : max(0, try row.decode(Int64.self, atIndex: 0)), rateLimit: limit)
            }
            return work
        }
    }
}
