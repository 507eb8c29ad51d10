import GRDB

/// Updates the totals of all sessions within one transaction. Reads the affected rows before each change and after the last change, and
/// adds the differences to the totals.
///
/// For a change to a whole session, the updater reads all figures of the session. Changes to single files are frequent, so for these the
/// updater reads only the session's row and the file's checkpoints. For new files, it reads only the session's row; for inserted sessions,
/// nothing.
struct TotalsUpdater {
    private typealias Snapshot = (state: String, figures: SessionFigures)

    /// A session in which only individual files change.
    private struct FileChanges {
        var snapshot: Snapshot
        /// The bytes covered by checkpoints before the changes, by position.
        var confirmed: [Int64: Int64] = [:]
    }

    private let db: Database
    private var wholeSessions: [SessionKey: Snapshot?] = [:]
    private var files: [SessionKey: FileChanges] = [:]
    private var changes: [String: SessionFigures] = [:]
    /// The number of newly confirmed bytes.
    private var confirmed: Int64 = 0

    init(_ db: Database) {
        self.db = db
    }

    /// Reads the rows that a change affects. Called before each change.
    mutating func willApply(_ write: StoreWrite) throws {
        if case .insertSessions(let sessions) = write {
            sessions.forEach { changes[$0.entry.state.rawValue, default: SessionFigures()] += SessionFigures($1.items) }
        } else if case .file(let key, let position, _) = write {
            try recordFile(at: position, of: key)
        } else if case .expansion(let key, let step) = write {
            // New files have no checkpoints.
            if step.changesFigures { _ = try recordSession(key) }
        } else if let key = write.changedSession, wholeSessions[key] == nil {
            if let files = files.removeValue(forKey: key) { try addChanges(of: files, in: key) }
            wholeSessions[key] = .some(try snapshot(of: key, Self.sessionQuery))
        }
    }

    /// Records the state of a file before its first change in the transaction.
    private mutating func recordFile(at position: Int64, of key: SessionKey) throws {
        guard try recordSession(key), files[key]?.confirmed[position] == nil else { return }
        let bytes = try confirmedBytes(of: key, position)
        files[key]?.confirmed[position] = bytes
    }

    /// Records the state of a session before its first change in the transaction, without its checkpoints.
    ///
    /// - Returns: Whether only individual files of the session change.
    private mutating func recordSession(_ key: SessionKey) throws -> Bool {
        guard wholeSessions[key] == nil else { return false }
        guard files[key] == nil else { return true }
        guard let snapshot = try snapshot(of: key, Self.queryWithoutCheckpoints) else { return false }
        files[key] = FileChanges(snapshot: snapshot)
        return true
    }

    private mutating func addChanges(of files: FileChanges, in key: SessionKey) throws {
        guard let later = try snapshot(of: key, Self.queryWithoutCheckpoints) else { return }
        var growth = later.figures.bytesDone - files.snapshot.figures.bytesDone
        var change = later.figures
        change -= files.snapshot.figures
        for (position, before) in files.confirmed {
            let now = try confirmedBytes(of: key, position)
            change.bytesDone.addSaturated(now - before)
            growth.addSaturated(now - before)
        }
        changes[later.state, default: SessionFigures()] += change
        confirmed.addSaturated(max(0, growth))
    }

    /// Writes the totals. Called after the last change.
    mutating func writeTotals() throws {
        for (key, files) in files { try addChanges(of: files, in: key) }
        for (key, earlier) in wholeSessions {
            let later = try snapshot(of: key, Self.sessionQuery)
            if let earlier { changes[earlier.state, default: SessionFigures()] -= earlier.figures }
            if let later { changes[later.state, default: SessionFigures()] += later.figures }
            if let earlier, let later { confirmed.addSaturated(max(0, later.figures.bytesDone - earlier.figures.bytesDone)) }
        }
        for (state, change) in changes where !change.isZero {
            try QueueStore.execute(
                db,
                """
                INSERT INTO total(state, files, files_done, files_failed, bytes_total, bytes_done) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET \(Self.additions)
                """,
                [state]
                    + StatementArguments(
                        [change.files, change.filesDone, change.filesFailed, change.bytesTotal, change.bytesDone]
                            .map { min(max($0, -Self.maximumTotal), Self.maximumTotal) }))
        }
        if confirmed > 0 { try QueueStore.addToSetting("bytesConfirmed", confirmed, in: db) }
    }

    private func snapshot(of key: SessionKey, _ selection: String) throws -> Snapshot? {
        try StoredRow.fetchOne(db.cachedStatement(sql: selection), arguments: [key]).map {
            (state: try $0.decode(atIndex: 0), figures: try SessionFigures($0))
        }
    }

    private func confirmedBytes(of key: SessionKey, _ position: Int64) throws -> Int64 {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT \(SessionFigures.maximumConfirmed) FROM checkpoint WHERE session = ? AND position = ?"),
            arguments: [key, position]) ?? 0
    }

    /// The limit of each added number, and of the total before the addition, so that the sum does not overflow.
    private static let maximumTotal: Int64 = 1 << 62 - 1
    private static let additions = ["files", "files_done", "files_failed", "bytes_total", "bytes_done"]
        .map { "\($0) = min(max(\($0), -\(maximumTotal)), \(maximumTotal)) + excluded.\($0)" }.joined(separator: ", ")

    private static let sessionQuery = "\(SessionFigures.selection) WHERE session.key = ?"
    private static let queryWithoutCheckpoints = "\(SessionFigures.selectionWithoutCheckpoints) WHERE session.key = ?"
}

extension StoreWrite {
    /// The session whose state or figures may change; nil if the write inserts sessions, changes only individual files, or affects no totals.
    fileprivate var changedSession: SessionKey? {
        switch self {
        case .schedule(let row): row.entry.key
        case .changeAccount(let key, _), .addItems(let key, _), .replaceItems(let key, _, _, _), .resetSession(let key, _),
            .continueReset(let key),
            .deleteSession(let key, _), .dropCheckpoints(let key),
            .quarantine(let key, _), .restoreSession(let key, _), .discardPartial(let key),
            .continueDiscard(let key):
            key
        default: nil
        }
    }
}
