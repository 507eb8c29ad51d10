/// Rows of the table `schedule` that were read, but not loaded into the scheduler yet.
struct LoadedRows: Sendable {
    /// The number of rows in a block of memory. Each block is freed as soon as its rows have been passed to the scheduler.
    private static let blockSize = 8_192

    private var entries: [[Entry]] = []
    private var detailsByKey: [SessionKey: EntryDetails] = [:]
    private var unreadable: [SessionKey] = []

    init(_ scan: ScheduleScan) throws {
        var rows = Self()
        var last: [Entry] = []
        try scan.forEach { row in
            guard let entry = row.entry else { return rows.unreadable.append(row.key) }
            if let details = row.details { rows.detailsByKey[entry.key] = details }
            if last.capacity == 0 { last.reserveCapacity(Self.blockSize) }
            last.append(entry)
            if last.count == Self.blockSize {
                rows.entries.append(last)
                last = []
            }
        }
        rows.entries.append(last)
        self = rows
    }

    private init() {}

    /// Passes all rows to the body, and frees each block after its last row.
    consuming func forEach(_ body: (SessionKey, Entry?, EntryDetails?) -> Void) {
        entries.reverse()
        while let block = entries.popLast() {
            for entry in block { body(entry.key, entry, detailsByKey.isEmpty ? nil : detailsByKey[entry.key]) }
        }
        for key in unreadable { body(key, nil, nil) }
    }
}
