import GRDB
import TransferCore

/// Operations on the rows of a session that take several transactions. While such an operation is in progress, the table `setting` contains
/// its mark.
extension QueueStore {
    enum Mark: String, CaseIterable, Sendable {
        case reset, discard

        /// The name of the session's mark, or the pattern for the marks of all sessions.
        func name(of key: some CustomStringConvertible) -> String { "\(rawValue) \(key)" }
    }

    static func remove(_ marks: [Mark] = Mark.allCases, of key: SessionKey, in db: Database) throws {
        for mark in marks { try execute(db, "DELETE FROM setting WHERE name = ?", [mark.name(of: key)]) }
    }

    static func has(_ mark: Mark, of key: SessionKey, in db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM setting WHERE name = ?)"), arguments: [mark.name(of: key)]) == true
    }

    /// Completes the operations on a session that are in progress.
    package func finishMarked(_ key: SessionKey) async throws {
        for (mark, step) in [(Mark.reset, StoreWrite.continueReset(key)), (.discard, .continueDiscard(key))] {
            while try await read({ try Self.has(mark, of: key, in: $0) }) { try await commit([step]) }
        }
    }

    /// Completes the operations on all sessions that are in progress.
    package func finishMarked() async throws(QueueError) {
        do {
            for mark in Mark.allCases {
                let names = try await read { db in
                    try String.fetchAll(db, sql: "SELECT name FROM setting WHERE name GLOB ?", arguments: [mark.name(of: "*")])
                }
                for key in names.compactMap({ SessionKey($0.dropFirst(mark.rawValue.count + 1)) }) { try await finishMarked(key) }
            }
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }
}
