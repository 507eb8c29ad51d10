import GRDB

/// Keeps the totals of the store right within one transaction: looks at each session that a change touches before and after all changes.
///
/// That costs two short reads for a session and transaction, whatever the changes are, and nothing for sessions that are inserted.
struct FigureLedger {
    private typealias Image = (state: String, figures: SessionFigures)

    private let db: Database
    private var before: [SessionKey: Image?] = [:]
    private var changes: [String: SessionFigures] = [:]
    /// Bytes that were confirmed.
    private var confirmed: Int64 = 0

    init(_ db: Database) {
        self.db = db
    }

    /// Called before each change is made.
    mutating func willApply(_ write: StoreWrite) throws {
        if case .insertSessions(let sessions) = write {
            sessions.forEach { changes[$0.entry.state.rawValue, default: SessionFigures()] += SessionFigures($1.items) }
        } else if let key = write.changesFigures, before[key] == nil {
            before[key] = .some(try image(of: key))
        }
    }

    /// Called after the last change.
    mutating func settle() throws {
        for (key, earlier) in before {
            let later = try image(of: key)
            if let earlier { changes[earlier.state, default: SessionFigures()] -= earlier.figures }
            if let later { changes[later.state, default: SessionFigures()] += later.figures }
            if let earlier, let later { confirmed += max(0, later.figures.bytesDone - earlier.figures.bytesDone) }
        }
        for (state, change) in changes where !change.isZero {
            try QueueStore.execute(
                db,
                """
                INSERT INTO total(state, files, files_done, files_failed, bytes_total, bytes_done) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET files = files + excluded.files, files_done = files_done + excluded.files_done,
                    files_failed = files_failed + excluded.files_failed, bytes_total = bytes_total + excluded.bytes_total,
                    bytes_done = bytes_done + excluded.bytes_done
                """,
                [state, change.files, change.filesDone, change.filesFailed, change.bytesTotal, change.bytesDone])
        }
        if confirmed > 0 { try QueueStore.addToSetting("bytesConfirmed", confirmed, in: db) }
    }

    private func image(of key: SessionKey) throws -> Image? {
        try Row.fetchOne(db.cachedStatement(sql: Self.selection), arguments: [key]).map {
            (state: try $0.decode(atIndex: 0), figures: try SessionFigures($0))
        }
    }

    private static let selection = "\(SessionFigures.selection) WHERE session.key = ?"
}

extension StoreWrite {
    /// The session whose state or figures are others afterwards; nil for one that is inserted.
    fileprivate var changesFigures: SessionKey? {
        switch self {
        case .schedule(let row): row.entry.key
        case .addItems(let key, _), .expansion(let key, .finish), .resetSession(let key, _), .deleteSession(let key, _),
            .quarantine(let key, _), .file(let key, _, _), .discardPartial(let key):
            key
        default: nil
        }
    }
}
