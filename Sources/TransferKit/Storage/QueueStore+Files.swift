import Foundation
import GRDB
import TransferCore

extension QueueStore {
    static func insertItems(_ items: [ItemDraft], of key: SessionKey, in db: Database) throws {
        for (position, file) in items.enumerated() {
            try execute(
                db, "INSERT INTO file(session, position, source, destination, state, size) VALUES (?, ?, ?, ?, ?, ?)",
                [key, position, file.source, file.destination, ItemState.pending.rawValue, file.size])
        }
    }

    static func addItems(_ items: [ItemDraft], to key: SessionKey, in db: Database) throws {
        let count = try Int.fetchOne(db, sql: "SELECT ifnull(max(position) + 1, 0) FROM file WHERE session = ?", arguments: [key]) ?? 0
        for (offset, file) in items.enumerated() {
            try execute(
                db, "INSERT INTO file(session, position, source, destination, state, size) VALUES (?, ?, ?, ?, ?, ?)",
                [key, count + offset, file.source, file.destination, ItemState.pending.rawValue, file.size])
        }
        try execute(
            db, "UPDATE session SET files = files + ?, bytes_total = bytes_total + ? WHERE key = ?",
            [items.count, items.reduce(0) { $0 + $1.size }, key])
    }

    static func resetFiles(of key: SessionKey, isWhole: Bool, in db: Database) throws {
        if isWhole {
            try discardCheckpoints(of: key, in: db)
            try execute(
                db, "UPDATE file SET state = 'pending', error = NULL, receipt = NULL, generation = generation + 1 WHERE session = ?", [key])
        } else {
            try execute(db, "UPDATE file SET state = 'pending', error = NULL WHERE session = ? AND state = 'failed'", [key])
        }
    }

    static func apply(_ report: FileReport, to session: SessionKey, position: Int64, in db: Database) throws {
        switch report {
        case .checkpoint(let checkpoint, let endpoint, let generation, let identity):
            try execute(
                db,
                """
                INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET generation = excluded.generation, data = excluded.data, confirmed = excluded.confirmed,
                    identity = excluded.identity
                """,
                [session, position, endpoint.address, generation, checkpoint.data, checkpoint.confirmed, try StoreCoding.encode(identity)])
        case .size(let size):
            try execute(
                db,
                """
                UPDATE session SET bytes_total = bytes_total + ? - (SELECT max(size, 0) FROM file WHERE session = ? AND position = ?) WHERE key = ?
                """, [size, session, position, session])
            try execute(db, "UPDATE file SET size = ? WHERE session = ? AND position = ?", [size, session, position])
        case .completed(let receipt):
            try execute(
                db, "UPDATE file SET state = ?, error = NULL, receipt = ? WHERE session = ? AND position = ?",
                [ItemState.completed.rawValue, try StoreCoding.encode(receipt), session, position])
            try execute(db, "DELETE FROM checkpoint WHERE session = ? AND position = ?", [session, position])
            try execute(
                db, "UPDATE session SET files_done = files_done + 1, bytes_done = bytes_done + ? WHERE key = ?", [receipt.bytes, session])
        case .failed(let error):
            try execute(
                db, "UPDATE file SET state = ?, error = ? WHERE session = ? AND position = ?",
                [ItemState.failed.rawValue, try StoreCoding.encode(error), session, position])
            try execute(db, "UPDATE session SET files_failed = files_failed + 1 WHERE key = ?", [session])
        case .restarted(let generation, let error):
            try execute(
                db, "UPDATE file SET generation = ?, error = ? WHERE session = ? AND position = ?",
                [generation, try StoreCoding.encode(error), session, position])
            try execute(db, "DELETE FROM checkpoint WHERE session = ? AND position = ?", [session, position])
        }
    }
}
