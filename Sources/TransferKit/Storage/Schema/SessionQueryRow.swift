import Foundation
import GRDB
import SystemPackage
import TransferCore

/// A row of the query that reads complete sessions. Columns are read by position, because lookups by name take seconds for 100,000 rows.
/// The SQL names its indexes (`INDEXED BY`); otherwise SQLite scans all file rows of the session.
struct SessionQueryRow {
    enum Column: Int, CaseIterable {
        case key, id, state, direction, name, account, endpoint, transport, folder, context, options, error
        case attempts, files, filesDone, filesFailed, filesUnsized, bytesTotal, bytesDone, bytesConfirmed, milliseconds
        case createdAt, startedAt, endedAt, tags

        private var expression: String {
            switch self {
            case .id: "schedule.id"
            case .state: "schedule.state"
            case .account: "account.name"
            case .tags: "(SELECT json_group_array(tag) FROM session_tag WHERE session_tag.session = session.key)"
            case .bytesConfirmed:
                """
                \(SessionFigures.confirmed)
                """
            case .filesUnsized:
                """
                (SELECT count(*) FROM file INDEXED BY file_unsized
                    WHERE file.session = session.key AND unsized = 1 AND file.state = 'pending' AND \(QueueStore.isInStatistics("session.key")))
                    + (SELECT count(*) FROM item INDEXED BY item_unsized WHERE item.session = session.key AND unsized = 1)
                """
            case .filesDone: "session.files_done"
            case .filesFailed: "session.files_failed"
            case .bytesTotal: "session.bytes_total"
            case .bytesDone: "session.bytes_done"
            case .createdAt: "session.created_at"
            case .startedAt: "session.started_at"
            case .endedAt: "session.ended_at"
            case .key, .direction, .name, .endpoint, .transport, .folder, .context, .options, .error, .attempts, .files, .milliseconds:
                "session.\(self)"
            }
        }

        /// A constant SQL expression that replaces the tags or the number of unsized files if their tables are damaged; nil for other
        /// columns.
        private var substitute: String? {
            switch self {
            case .tags: "'[]'"
            case .filesUnsized: "0"
            default: nil
            }
        }

        static func list(isBare: Bool) -> String {
            allCases.map { (isBare ? $0.substitute : nil) ?? $0.expression }.joined(separator: ", ")
        }
    }

    /// Reads the sessions whose keys are in a JSON array, in the order of the array.
    static let query = query(isBare: false)

    /// Like ``query``, but reads neither tags nor unsized files.
    static let bareQuery = query(isBare: true)

    private static func query(isBare: Bool) -> String {
        """
        SELECT \(Column.list(isBare: isBare))
        FROM json_each(?) AS wanted CROSS JOIN session ON session.key = wanted.value
            JOIN schedule ON schedule.session = session.key JOIN account ON account.key = session.account
        """
    }

    let row: StoredRow

    func value<Value: StoredRow.Value>(
        _ column: Column, as type: Value.Type = Value.self
    ) throws -> Value {
        try row.decode(atIndex: column.rawValue)
    }

    func value<Value: StoredRow.Value>(
        _ column: Column, ifPresent type: Value.Type = Value.self
    ) throws -> Value? {
        try row.decode(Value?.self, atIndex: column.rawValue)
    }

    func sessionRecord(_ sources: SourceFolders) throws -> SessionRecord {
        guard
            let id = SessionID(data: try value(.id)), let state = SessionState(rawValue: try value(.state)),
            let direction = TransferDirection(rawValue: try value(.direction))
        else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a session has no valid ID, state or direction")
        }
        var status = SessionStatus(
            id: id, index: 0, state: state, name: try value(.name), direction: direction, account: try value(.account),
            endpoint: try value(.endpoint, ifPresent: String.self),
            transport: try value(.transport, ifPresent: String.self).map(TransportID.init(rawValue:)), tags: try tags(),
            context: try value(.context, ifPresent: Data.self), statistics: try statistics(), attempts: try count(.attempts),
            error: try StoreCoding.decodeIfPresent(from: value(.error, ifPresent: String.self)),
            createdAt: StoreCoding.date(try value(.createdAt)),
            startedAt: try value(.startedAt, ifPresent: Int64.self).map(StoreCoding.date),
            endedAt: try value(.endedAt, ifPresent: Int64.self).map(StoreCoding.date))
        let options: SessionOptions =
            try StoreCoding.decodeIfPresent(from: value(.options, ifPresent: String.self)) ?? SessionOptions()
        (status.rateLimit, status.deadline) = (options.rateLimit, options.deadline)
        return SessionRecord(
            key: try value(.key), status: status,
            options: options,
            folder: try value(.folder, ifPresent: Data.self).map { FilePath(bytes: sources.path(.folder, [UInt8]($0))) })
    }

    private func tags() throws -> [String] {
        let text = try value(.tags, as: String.self)
        return text == "[]" ? [] : try StoreCoding.decode(from: text)
    }

    private func statistics() throws -> SessionStatistics {
        let (total, done) = (try bytes(.bytesTotal), try bytes(.bytesDone))
        // Both numbers are bounded, so their sum does not overflow.
        let confirmed = done + (try value(.bytesConfirmed, as: Int64.self))
        var statistics = SessionStatistics(
            files: try count(.files), filesDone: try count(.filesDone), filesFailed: try count(.filesFailed), bytesTotal: total,
            bytesDone: confirmed, bytesSent: confirmed, filesUnsized: try count(.filesUnsized))
        statistics.setElapsed(Double(min(max(0, try value(.milliseconds, as: Int64.self)), QueueStore.maximumBytes)) / 1_000)
        return statistics
    }

    /// Returns a byte count, limited to ``QueueStore/maximumBytes``. Earlier versions stored sums of up to 2^62; negative or larger values mean that
    /// the row is damaged.
    private func bytes(_ column: Column) throws -> Int64 {
        let bytes = try value(column, as: Int64.self)
        guard (0...1 << 62).contains(bytes) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a session has an impossible number of bytes")
        }
        return min(bytes, QueueStore.maximumBytes)
    }

    /// Returns a count, limited to 0 ... 2^40 so that sums can't overflow.
    private func count(_ column: Column) throws -> Int {
        Int(min(max(0, try value(column, as: Int64.self)), 1 << 40))
    }
}
