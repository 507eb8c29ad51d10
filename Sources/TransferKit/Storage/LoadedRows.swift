/// Rows of the schedule that were read ahead of their turn.
struct LoadedRows: Sendable {
    /// What is given back to the system at once as it is used up.
    private static let piece = 8_192

    private var entries: [[Entry]] = []
    private var detailed: [SessionKey: EntryDetails] = [:]
    private var unreadable: [SessionKey] = []

    init(_ scan: ScheduleScan) throws {
        var rows = Self()
        var last: [Entry] = []
        try scan.forEach { row in
            guard let entry = row.entry else { return rows.unreadable.append(row.key) }
            if let details = row.details { rows.detailed[entry.key] = details }
            if last.capacity == 0 { last.reserveCapacity(Self.piece) }
            last.append(entry)
            if last.count == Self.piece {
                rows.entries.append(last)
                last = []
            }
        }
        rows.entries.append(last)
        self = rows
    }

    private init() {}

    /// Hands all rows on, and lets go of them meanwhile.
    consuming func forEach(_ body: (SessionKey, Entry?, EntryDetails?) -> Void) {
        entries.reverse()
        while let piece = entries.popLast() {
            for entry in piece { body(entry.key, entry, detailed.isEmpty ? nil : detailed[entry.key]) }
        }
        for key in unreadable { body(key, nil, nil) }
    }
}
