import Foundation
import GRDB

extension QueueStore {
    private enum Name {
        static let orderRevision = "orderRevision"
        static let sessionLimit = "sessionLimit"
        static let rateLimit = "rateLimit"
        static let diskFloor = "diskFloor"
        /// The number of completed sessions to keep; -1 to keep all.
        static let keptCount = "keptCount"
        /// The time in milliseconds for which completed sessions stay.
        static let keptTime = "keptTime"
        static let clockSeen = "clockSeen"
        static let clockSteady = "clockSteady"
        /// The prefix of the names of the settings for a timetable. Each rule is stored as four settings: the days as a bit field, the start,
        /// the end, and the rate; a rate of 0 means no limit.
        static let timetable = "timetable."
        /// The prefix of the names of the settings for ``QueueSettings/releases``. The rest of such a name is the session's ID.
        static let release = "release."
    }

    static func store(_ settings: QueueSettings, in db: Database) throws {
        var (count, time): (Int64?, Int64?)
        switch settings.retention {
        case .keepAll: count = -1
        case .count(let number): count = Int64(max(0, number))
        case .age(let age): time = Int64(min(max(0, age / .milliseconds(1)), 1e15))
        case nil: break
        }
        let values: [(String, Int64?)] = [
            (Name.orderRevision, Int64(clamping: settings.orderRevision)),
            (Name.sessionLimit, settings.maxConcurrentSessions.map(Int64.init)),
            (Name.rateLimit, settings.rateLimit), (Name.diskFloor, settings.diskFloor), (Name.keptCount, count), (Name.keptTime, time),
        ]
        for (name, value) in values { try store(value, as: name, in: db) }
        try execute(db, "DELETE FROM setting WHERE name BETWEEN ? AND ?", [Name.timetable, Name.timetable + "~"])
        for (number, rule) in (settings.timetable?.rules ?? []).enumerated() {
            let days = rule.days.reduce(0) { $0 | 1 << $1.rawValue }
            for (field, value) in [("days", days), ("start", rule.start), ("end", rule.end)] {
                try store(Int64(value), as: "\(Name.timetable)\(number).\(field)", in: db)
            }
            try store(rule.rateLimit ?? 0, as: "\(Name.timetable)\(number).rate", in: db)
        }
        // A forced removal of many sessions can require many stored releases, so write only the differences.
        let releases = settings.releases.map { Name.release + $0.description }
        let stored = try String.fetchSet(
            db, sql: "SELECT name FROM setting WHERE name BETWEEN ? AND ?", arguments: [Name.release, Name.release + "~"])
        for name in stored.subtracting(releases) { try execute(db, "DELETE FROM setting WHERE name = ?", [name]) }
        for name in releases where !stored.contains(name) { try store(1, as: name, in: db) }
    }

    /// The stored timetable; nil if no timetable is stored, or if the stored timetable is damaged.
    private static func timetable(_ values: [String: Int64]) -> BandwidthTimetable? {
        var timetable = BandwidthTimetable([])
        while timetable.rules.count < BandwidthTimetable.maximumRules {
            let fields = ["days", "start", "end", "rate"].compactMap { values["\(Name.timetable)\(timetable.rules.count).\($0)"] }
            guard fields.count == 4 else { break }
            let days = BandwidthTimetable.Weekday.allCases.filter { fields[0] >> Int64($0.rawValue) & 1 == 1 }
            timetable.rules.append(
                BandwidthTimetable.Rule(
                    days: Set(days), start: Int(clamping: fields[1]), end: Int(clamping: fields[2]),
                    rateLimit: fields[3] == 0 ? nil : fields[3]))
        }
        return (try? timetable.validate()) == nil ? nil : timetable
    }

    static func store(seen: Date, steady: Date, in db: Database) throws {
        for (name, date) in [(Name.clockSeen, seen), (Name.clockSteady, steady)] { try store(StoreCoding.encode(date), as: name, in: db) }
    }

    private static func store(_ value: Int64?, as name: String, in db: Database) throws {
        try execute(db, "INSERT INTO setting(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", [name, value])
    }

    static func loadSettings(into scheduler: inout Scheduler, from db: Database) throws {
        var values: [String: Int64] = [:]
        for row in try StoredRow.fetchAll(db, sql: "SELECT name, value FROM setting WHERE value IS NOT NULL") {
            // An unreadable setting counts as not set.
            guard let name = try? row.decode(String.self, atIndex: 0), let value = try? row.decode(Int64.self, atIndex: 1) else { continue }
            values[name] = value
        }
        // A value out of range means that the database is damaged. Such a value counts as not set.
        scheduler.load(
            QueueSettings(
                orderRevision: UInt64(clamping: values[Name.orderRevision] ?? 0),
                maxConcurrentSessions: values[Name.sessionLimit].flatMap { $0 >= 1 ? Int(clamping: $0) : nil },
                rateLimit: values[Name.rateLimit].flatMap { $0 >= 1 ? $0 : nil },
                retention: retention(count: values[Name.keptCount], time: values[Name.keptTime]),
                diskFloor: values[Name.diskFloor].flatMap { (0...FileSize.maximum).contains($0) ? $0 : nil },
                timetable: timetable(values),
                releases: values.keys.filter { $0.hasPrefix(Name.release) }.sorted().compactMap {
                    SessionID(String($0.dropFirst(Name.release.count)))
                }))
        if let seen = values[Name.clockSeen].flatMap(calendarDate), let steady = values[Name.clockSteady].flatMap(calendarDate) {
            scheduler.load(seen: seen, steady: steady)
        }
    }

    private static func retention(count: Int64?, time: Int64?) -> Retention? {
        if let time, .milliseconds(time) <= Retention.maximumAge, time >= 0 { return .age(.milliseconds(time)) }
        guard let count else { return nil }
        return count == -1 ? .keepAll : count >= 0 ? .count(Int(clamping: count)) : nil
    }

    /// Returns a date before the year 10,000; nil for other values, which occur only in a damaged database.
    private static func calendarDate(_ stored: Int64) -> Date? {
        (0..<253_402_300_800_000).contains(stored) ? StoreCoding.date(stored) : nil
    }
}
