import Foundation
import GRDB
import TransferCore

@testable import TransferKit

/// Targets for the contents of a queue's database.
enum StoreTargets {
    /// The input is a row of the change log. It consists of a line with the kind, eight bytes with the number, one byte with the size of
    /// the session IDs, the session IDs, and the detail.
    static func event(_ input: [UInt8]) {
        var reader = InputReader(input)
        let (kind, number, count) = (reader.text(), reader.number(), Int(reader.byte()))
        let sessions = reader.bytes(count)
        let detail = reader.rest.isEmpty ? nil : String(decoding: reader.rest, as: UTF8.self)
        let row = EventRow(kind: kind, sessions: count == 0 ? nil : Data(sessions), number: number == 0 ? nil : number, detail: detail)
        require(row.weight > 0, "A row has a weight.")
        guard let event = row.event else { return }
        require(event.name == kind, "An event has its row's kind.")
        // Skip events without a complete session ID, because the queue never writes such events.
        guard sessions.count >= 16, let again = try? EventRow(event) else { return }
        require(again.event != nil, "A written event can be read: \(event)")
    }

    private static let damaged = wait { try? await DamagedDatabase() }

    /// The first byte of the input selects an operation. The rest contains changes to the database. Each change consists of a column, a type and a
    /// value. The target applies the changes, and reads everything that a queue reads. Then the target performs the operation and most of a queue's
    /// background work, and reads everything again.
    static func rows(_ input: [UInt8]) {
        guard let damaged else { return require(false, "The database can be created.") }
        var reader = InputReader(input)
        let operation = reader.byte()
        var changes: [(DamagedDatabase.Column, DatabaseValue)] = []
        while !reader.isAtEnd, changes.count < 8 {
            let column = damaged.columns[Int(reader.byte()) % damaged.columns.count]
            changes.append((column, value(&reader)))
        }
        wait { [changes] in
            await damaged.damage(changes)
            await read(damaged.store)
            await work(operation, on: damaged.store)
            await read(damaged.store)
        }
    }

    private static func value(_ reader: inout InputReader) -> DatabaseValue {
        switch reader.byte() % 5 {
        case 0: .null
        case 1: reader.number().databaseValue
        case 2: Double(bitPattern: UInt64(bitPattern: reader.number())).databaseValue
        case 3: Data(reader.line()).databaseValue
        default: reader.text().databaseValue
        }
    }

    private static func read(_ store: QueueStore) async {
        _ = try? await store.load(Scheduler.Settings(transports: ["memory"]))
        _ = try? await store.readSessions([1, 2, 3, 4])
        _ = try? await store.totals(leavingOut: [1])
        _ = try? await store.remaining(of: [1, 2])
        for key in [SessionKey(1), 4] {
            _ = try? await store.items(of: key, from: 0, limit: 10)
            _ = try? await store.page(of: key, after: -1, limit: 10)
            _ = try? await store.pendingItem(of: key)
            _ = try? await store.firstFailure(of: key)
            _ = try? await store.remoteFolders(of: key, from: 0, limit: 10)
            _ = try? await store.checkpoint(session: key, position: 1, endpoint: "memory://memory/", generation: 1)
        }
        _ = try? await store.lastRevision()
        _ = try? await store.events(in: 0...UInt64.max)
        _ = try? await store.dueDiscards(at: .now, limit: 10)
        _ = try? await store.laterDiscards(at: .now, after: nil, limit: 10)
        _ = try? await store.backOffEndpoints(at: .now)
        for row in (try? await store.quarantined()) ?? [] { _ = try? await store.quarantinedRows(of: row.number, after: 0, limit: 10) }
        _ = try? await store.pendingStreams()
        _ = try? await store.sessions(tagged: "tag")
    }

    private static func work(_ operation: UInt8, on store: QueueStore) async {
        let write: StoreWrite? =
            switch operation % 8 {
            case 0: .deleteSession(1)
            case 1: .quarantine(1, "damaged")
            case 2: .resetSession(1, isWhole: true)
            case 3: .discardPartial(1)
            case 4: .deleteSession(4, isRunning: true)
            case 5: .releaseDiscards(1)
            case 6: .ran(1, 1_000, queue: 1_000)
            default: nil
            }
        if let write { _ = try? await store.commitIdentifyingFailure([write]) }
        while (try? await store.sweep()) == true {}
    }
}
