import Foundation
import GRDB
import TransferCore

/// The change log. Each event is stored in the same transaction as the change that it reports. Clients that missed events read the log to catch up.
extension QueueStore {
    /// The approximate maximum size of the stored log, in bytes, regardless of the number of events.
    private static let maximumWeight: Int64 = 64 << 20

    /// The limits of one page, in events and in bytes. A page never splits a `willChangeQueue` … `didChangeQueue` group, so a page can exceed the
    /// limits.
    private static let pageCount = 512
    private static let pageWeight: Int64 = 1 << 20

    /// The kinds of events after which a `willChangeQueue` … `didChangeQueue` group is not complete yet.
    private static let openKinds: Set<String> = ["willChangeQueue", "added", "removed", "moved"]

    // MARK: Writing

    /// Appends events, and prunes the log if it exceeds one of its limits by a tenth. Because of this margin, most commits delete nothing.
    static func append(_ events: [QueueEvent], keeping limit: Int, to db: Database) throws {
        guard let last = events.last else { return }
        // Unlike `EventRow.weight`, the column `weight` is cumulative: it includes all earlier events. If the row is damaged, the upper limit
        // prevents an overflow.
        var weight = min(
            max(0, try Int64.fetchOne(db.cachedStatement(sql: "SELECT weight FROM event ORDER BY revision DESC LIMIT 1")) ?? 0), .max / 2)
        let insertion = try db.cachedStatement(
            sql: "INSERT INTO event(revision, time, kind, sessions, number, detail, weight) VALUES (?, ?, ?, ?, ?, ?, ?)")
        for event in events {
            let row = try EventRow(event.kind)
            weight += row.weight
            try insertion.execute(arguments: [
                Int64(clamping: event.revision), StoreCoding.encode(event.time), row.kind, row.sessions, row.number, row.detail, weight,
            ])
        }
        try prune(keeping: Int64(max(1, limit)), last: Int64(clamping: last.revision), weight: weight, in: db)
    }

    private static func prune(keeping limit: Int64, last: Int64, weight: Int64, in db: Database) throws {
        guard
            let first = try StoredRow.fetchOne(db.cachedStatement(sql: "SELECT revision, weight FROM event ORDER BY revision LIMIT 1"))
        else { return }
        var target: Int64 = 0
        let count = last - min(max(0, try first.decode(Int64.self, atIndex: 0)), last)
        if count - limit / 10 >= limit { target = last - limit }
        if weight - min(max(0, try first.decode(Int64.self, atIndex: 1)), weight) > maximumWeight + maximumWeight / 10 {
            let firstKept = try Int64.fetchOne(
                db, sql: "SELECT revision FROM event WHERE weight > ? ORDER BY revision LIMIT 1", arguments: [weight - maximumWeight])
            target = max(target, (firstKept ?? last) - 1)
        }
        guard target > 0 else { return }
        // Never deletes the last event, because the number of the next event is derived from it. The last deleted event must not be in the middle of
        // a group, because the log must not begin with an incomplete group.
        try execute(
            db,
            """
            DELETE FROM event WHERE revision <= (
                SELECT revision FROM event WHERE revision <= ? AND kind NOT IN ('willChangeQueue', 'added', 'removed', 'moved')
                ORDER BY revision DESC LIMIT 1)
            """, [min(target, last - 1)])
    }

    // MARK: Reading

    /// Returns the revision of the last stored event, or 0.
    package func lastRevision() async throws -> UInt64 {
        try await read { db in UInt64(clamping: try Int64.fetchOne(db, sql: "SELECT max(revision) FROM event") ?? 0) }
    }

    /// Returns the first page of the events in a range, in order. Gap events replace events that are not stored, or that this version does not know,
    /// so no revision before the page's last event is missing.
    package func events(in range: ClosedRange<UInt64>) async throws -> [QueueEvent] {
        try await read { db in
            let cursor = try StoredRow.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT revision, time, kind, sessions, number, detail FROM event WHERE revision BETWEEN ? AND ? ORDER BY revision
                        """), arguments: [Int64(clamping: range.lowerBound), Int64(clamping: range.upperBound)])
            var page = EventPage(from: range.lowerBound)
            var (count, weight) = (0, Int64(0))
            while let stored = try cursor.next() {
                guard let row = try? EventRow(stored), let time = try? StoreCoding.date(stored.decode(atIndex: 1)) else { continue }
                page.append(row, revision: UInt64(clamping: try stored.decode(Int64.self, atIndex: 0)), time: time)
                count += 1
                weight += row.weight
                if count >= Self.pageCount || weight >= Self.pageWeight, !Self.openKinds.contains(row.kind) { return page.events }
            }
            return page.filled(through: range.upperBound)
        }
    }
}

/// Builds a page of the log for a reader. Replaces missing revisions with gap events.
private struct EventPage {
    private(set) var events: [QueueEvent] = []
    private var next: UInt64
    private var time = Date()

    init(from revision: UInt64) {
        next = revision
    }

    mutating func append(_ row: EventRow, revision: UInt64, time: Date) {
        if next < revision { appendGap(next...revision - 1, at: time) }
        next = revision + 1
        self.time = time
        guard let kind = row.event else { return appendGap(revision...revision, at: time) }
        // The gap replaced the beginning of this group, and a reader can't apply an incomplete group.
        if case .gap = events.last?.kind, row.kind == "didChangeQueue" { return appendGap(revision...revision, at: time) }
        events.append(QueueEvent(revision: revision, time: time, kind: kind))
    }

    func filled(through revision: UInt64) -> [QueueEvent] {
        var page = self
        if next <= revision { page.appendGap(next...revision, at: time) }
        return page.events
    }

    /// Appends a gap. Replaces a preceding `willChangeQueue` event, and extends a preceding gap.
    private mutating func appendGap(_ gap: ClosedRange<UInt64>, at time: Date) {
        var from = gap.lowerBound
        if case .willChangeQueue = events.last?.kind { from = events.removeLast().revision }
        if case .gap(let earlier, _) = events.last?.kind {
            from = earlier
            events.removeLast()
        }
        events.append(.gap(from...gap.upperBound, at: time))
    }
}
