import GRDB

/// Keeps the totals of the store right within one transaction: looks at what a change touches before and after all changes.
///
/// Of a session that changes as a whole, that is all of its figures. Reports of files, which come as often as there are files, cost no more than
/// a look at the session's row and at their own checkpoints. Sessions that are inserted cost nothing.
struct TotalsUpdater {
    private typealias Image = (state: String, figures: SessionFigures)

    /// A session of which single files change.
    private struct Files {
        var image: Image
        /// What checkpoints vouched for, by position.
        var confirmed: [Int64: Int64] = [:]
    }

    private let db: Database
    private var wholes: [SessionKey: Image?] = [:]
    private var files: [SessionKey: Files] = [:]
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
        } else if case .file(let key, let position, _) = write {
            try look(at: position, of: key)
        } else if let key = write.changesFigures, wholes[key] == nil {
            if let files = files.removeValue(forKey: key) { try settle(files, of: key) }
            wholes[key] = .some(try image(of: key, Self.whole))
        }
    }

    private mutating func look(at position: Int64, of key: SessionKey) throws {
        guard wholes[key] == nil else { return }
        if files[key] == nil {
            guard let image = try image(of: key, Self.withoutCheckpoints) else { return }
            files[key] = Files(image: image)
        }
        guard files[key]?.confirmed[position] == nil else { return }
        let bytes = try confirmedBytes(of: key, position)
        files[key]?.confirmed[position] = bytes
    }

    private mutating func settle(_ files: Files, of key: SessionKey) throws {
        guard let later = try image(of: key, Self.withoutCheckpoints) else { return }
        var growth = later.figures.bytesDone - files.image.figures.bytesDone
        var change = later.figures
        change -= files.image.figures
        for (position, before) in files.confirmed {
            let now = try confirmedBytes(of: key, position)
            change.bytesDone.addSaturated(now - before)
            growth.addSaturated(now - before)
        }
        changes[later.state, default: SessionFigures()] += change
        confirmed.addSaturated(max(0, growth))
    }

    /// Called after the last change.
    mutating func settle() throws {
        for (key, files) in files { try settle(files, of: key) }
        for (key, earlier) in wholes {
            let later = try image(of: key, Self.whole)
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
                            .map { min(max($0, -Self.mostInTotal), Self.mostInTotal) }))
        }
        if confirmed > 0 { try QueueStore.addToSetting("bytesConfirmed", confirmed, in: db) }
    }

    private func image(of key: SessionKey, _ selection: String) throws -> Image? {
        try StoredRow.fetchOne(db.cachedStatement(sql: selection), arguments: [key]).map {
            (state: try $0.decode(atIndex: 0), figures: try SessionFigures($0))
        }
    }

    private func confirmedBytes(of key: SessionKey, _ position: Int64) throws -> Int64 {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT \(SessionFigures.mostConfirmed) FROM checkpoint WHERE session = ? AND position = ?"),
            arguments: [key, position]) ?? 0
    }

    /// Totals stop there; the sum of two such numbers is within what a number holds.
    private static let mostInTotal: Int64 = 1 << 62 - 1
    private static let additions = ["files", "files_done", "files_failed", "bytes_total", "bytes_done"]
        .map { "\($0) = min(max(\($0), -\(mostInTotal)), \(mostInTotal)) + excluded.\($0)" }.joined(separator: ", ")

    private static let whole = "\(SessionFigures.selection) WHERE session.key = ?"
    private static let withoutCheckpoints = "\(SessionFigures.selectionWithoutCheckpoints) WHERE session.key = ?"
}

extension StoreWrite {
    /// The session whose state or figures are others afterwards; nil for one that is inserted, or of which only a file changes.
    fileprivate var changesFigures: SessionKey? {
        switch self {
        case .schedule(let row): row.entry.key
        case .expansion(let key, let step): step.changesFigures ? key : nil
        case .addItems(let key, _), .resetSession(let key, _), .continueReset(let key), .deleteSession(let key, _),
            .quarantine(let key, _), .restoreSession(let key, _), .discardPartial(let key),
            .continueDiscard(let key):
            key
        default: nil
        }
    }
}
