import GRDB
import TransferCore

/// Operations on the rows of a session that can take several transactions. While such an operation is incomplete, a row of the table `setting`
/// records the operation. This row is the operation's *mark*. A transaction that must not change more rows
/// (``StoreTransaction/rowsToSweep``) only stores the mark.
extension QueueStore {
    /// The operations that can take several transactions: the reset of files, and the move of checkpoints into the outbox, the stored list
    /// of pending removals (``DiscardQuery``).
    enum Mark: String, CaseIterable, Sendable {
        case reset, discard

        func name(of key: SessionKey) -> String { "\(rawValue) \(key)" }

        /// Returns the session whose mark has this name; nil if the name is damaged.
        func session(of name: String) -> SessionKey? {
            guard let key = SessionKey(name.dropFirst(rawValue.count + 1)), self.name(of: key) == name else { return nil }
            return key
        }

        /// The name of the mark's value in the content of a session in quarantine.
        var nameInQuarantine: String { "mark.\(rawValue)" }

        func continuation(of key: SessionKey) -> StoreWrite {
            switch self {
            case .reset: .continueReset(key)
            case .discard: .continueDiscard(key)
            }
        }
    }

    static func set(_ mark: Mark, to value: Int64, of key: SessionKey, in db: Database) throws {
        try execute(
            db, "INSERT INTO setting(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            [mark.name(of: key), value])
    }

    static func remove(_ marks: [Mark] = Mark.allCases, of key: SessionKey, in db: Database) throws {
        for mark in marks { try execute(db, "DELETE FROM setting WHERE name = ?", [mark.name(of: key)]) }
    }

    static func has(_ mark: Mark, of key: SessionKey, in db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM setting WHERE name = ?)"), arguments: [mark.name(of: key)]) == true
    }

    /// The value of a session's mark; nil if there is no mark.
    static func value(of mark: Mark, _ key: SessionKey, in db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT ifnull(value, 0) FROM setting WHERE name = ?"), arguments: [mark.name(of: key)])
    }

    // MARK: Quarantine

    static func marks(of key: SessionKey, in db: Database) throws -> [Mark: Int64] {
        var marks: [Mark: Int64] = [:]
        for mark in Mark.allCases { marks[mark] = try value(of: mark, key, in: db) }
        return marks
    }

    /// Stores the values of a session's marks with the content of its quarantine, so that a restored session continues its operations.
    static func keep(_ marks: [Mark: Int64], inQuarantineOf key: SessionKey, in db: Database) throws {
        guard !marks.isEmpty, let number = try quarantine(of: key, in: db) else { return }
        for (mark, value) in marks {
            try execute(
                db, "UPDATE quarantine SET content = json_set(content, ?, ?) WHERE key = ?",
                ["$.\"\(mark.nameInQuarantine)\"", String(value), number])
        }
    }

    static func restoreMarks(_ content: [String: String], of key: SessionKey, in db: Database) throws {
        for mark in Mark.allCases {
            guard let value = content[mark.nameInQuarantine].flatMap({ Int64($0) }) else { continue }
            try set(mark, to: value, of: key, in: db)
        }
    }

    // MARK: Continuing

    /// Completes the unfinished operations on a session. Moves the session's checkpoints into the outbox before the reset of the files,
    /// because the checkpoints may belong to an earlier account of the session.
    package func finishMarked(_ key: SessionKey) async throws {
        for mark in [Mark.discard, .reset] {
            while try await read({ try Self.has(mark, of: key, in: $0) }) { try await commit([mark.continuation(of: key)]) }
        }
    }

    /// Completes the unfinished operations on all sessions. If the rows of a session can't be changed, completes the operations on the
    /// other sessions, and then throws the error.
    package func finishMarked() async throws(QueueError) {
        do {
            var failure: QueueError?
            for mark in Mark.allCases.reversed() {
                if let error = try await finish(mark) { failure = error }
            }
            if let failure { throw failure }
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }

    /// The maximum number of sessions whose operations one transaction continues.
    private static let maximumMarkedSessions = 1_000

    /// Completes the unfinished operations of one kind. One transaction continues the operations on several sessions if these sessions have
    /// few rows.
    ///
    /// - Returns: An error if the rows of a session can't be changed.
    private func finish(_ mark: Mark) async throws -> QueueError? {
        var last = "\(mark.rawValue) "
        // The exclamation mark is the character after the space.
        let end = "\(mark.rawValue)!"
        var limit = 16
        var failure: QueueError?
        while true {
            let names = try await markNames(after: last, through: end, limit: limit)
            guard let lastOfGroup = names.last else { return failure }
            let keys = names.compactMap { mark.session(of: $0) }
            guard !keys.isEmpty else {
                last = lastOfGroup
                continue
            }
            do throws(StoreRefusal) {
                try await commitIdentifyingFailure(keys.map { mark.continuation(of: $0) })
            } catch {
                guard error.culprit != nil else { throw error.error }
                // Continue the operations one by one, and skip the session whose rows can't be changed.
                limit = 1
                if names.count == 1 {
                    failure = error.error
                    last = lastOfGroup
                }
                continue
            }
            let rest = try await markNames(after: last, through: lastOfGroup, limit: limit).count { mark.session(of: $0) != nil }
            if rest == 0 {
                last = lastOfGroup
                limit = min(2 * limit, Self.maximumMarkedSessions)
            } else {
                limit = max(1, keys.count - rest)
            }
        }
    }

    private func markNames(after first: String, through last: String, limit: Int) async throws -> [String] {
        try await read { db in
            try String.fetchAll(
                db.cachedStatement(sql: "SELECT name FROM setting WHERE name > ? AND name <= ? ORDER BY name LIMIT ?"),
                arguments: [first, last, limit])
        }
    }

    /// Stores marks for sessions whose checkpoints must be moved into the outbox later, at most 10,000 marks in one transaction.
    func markDiscards(of keys: [SessionKey]) async throws(QueueError) {
        do {
            for start in stride(from: 0, to: keys.count, by: Self.maximumRowsPerSweep) {
                let group = Array(keys[start..<min(start + Self.maximumRowsPerSweep, keys.count)])
                try await writeInPlace { db in
                    for key in group { try Self.set(.discard, to: 0, of: key, in: db) }
                }
            }
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }
}
