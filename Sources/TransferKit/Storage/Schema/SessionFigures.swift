import GRDB

/// The numbers of files and bytes of one session, or their sums over several sessions.
package struct SessionFigures: Sendable, Equatable {
    package var files: Int64 = 0
    package var filesDone: Int64 = 0
    package var filesFailed: Int64 = 0
    package var bytesTotal: Int64 = 0
    package var bytesDone: Int64 = 0

    package init() {}

    /// Reads figures from a row, beginning with the second column.
    init(_ row: StoredRow) throws {
        files = try row.decode(atIndex: 1)
        filesDone = try row.decode(atIndex: 2)
        filesFailed = try row.decode(atIndex: 3)
        bytesTotal = try row.decode(atIndex: 4)
        bytesDone = try row.decode(atIndex: 5)
    }

    init(_ items: [ItemDraft]) {
        files = Int64(items.count)
        bytesTotal = Self.bytes(items)
    }

    init(_ statistics: SessionStatistics) {
        files = Int64(statistics.files)
        filesDone = Int64(statistics.filesDone)
        filesFailed = Int64(statistics.filesFailed)
        bytesTotal = statistics.bytesKnown
        bytesDone = statistics.bytesDone
    }

    /// Returns the total size of items in bytes, limited to the maximum of a session.
    static func bytes(_ items: [ItemDraft]) -> Int64 {
        min(items.reduce(0) { $0.addingSaturated(max(0, $1.size)) }, FileSize.sessionMaximum)
    }

    var isZero: Bool { self == SessionFigures() }

    static func += (left: inout SessionFigures, right: SessionFigures) {
        left.files.addSaturated(right.files)
        left.filesDone.addSaturated(right.filesDone)
        left.filesFailed.addSaturated(right.filesFailed)
        left.bytesTotal.addSaturated(right.bytesTotal)
        left.bytesDone.addSaturated(right.bytesDone)
    }

    static func -= (left: inout SessionFigures, right: SessionFigures) {
        left.files = left.files.subtractingSaturated(right.files)
        left.filesDone = left.filesDone.subtractingSaturated(right.filesDone)
        left.filesFailed = left.filesFailed.subtractingSaturated(right.filesFailed)
        left.bytesTotal = left.bytesTotal.subtractingSaturated(right.bytesTotal)
        left.bytesDone = left.bytesDone.subtractingSaturated(right.bytesDone)
    }

    /// Selects the state and figures of sessions. Bounds damaged numbers, so that sums don't overflow.
    static let selection = "SELECT state, \(columns) FROM session JOIN schedule ON schedule.session = session.key"

    /// Like ``selection``, but without the bytes covered by checkpoints. To count these bytes, SQLite would read a row for each checkpoint.
    static let selectionWithoutCheckpoints = "SELECT state, \(ownColumns) FROM session JOIN schedule ON schedule.session = session.key"

    /// The largest number of bytes that any checkpoint of a file covers.
    static let maximumConfirmed = clamped("max(confirmed)")

    private static let ownColumns = "\(counts), \(clamped("bytes_done")) AS bytes_done"

    private static let counts = """
        \(clamped("files")) AS files, \(clamped("files_done")) AS files_done, \(clamped("files_failed")) AS files_failed,
            \(clamped("bytes_total")) AS bytes_total
        """

    /// Columns for a query of the table `session`.
    static let columns = "\(counts), \(clamped("bytes_done")) + \(confirmed) AS bytes_done"

    /// The bytes covered by a session's checkpoints. Uses SQLite's `total`, because `sum` fails on an integer overflow, which damaged rows can
    /// cause.
    static let confirmed = """
        CAST(min((SELECT total(most) FROM (SELECT \(maximumConfirmed) AS most FROM checkpoint
            WHERE checkpoint.session = session.key GROUP BY position)), \(FileSize.sessionMaximum)) AS INTEGER)
        """

    /// Returns an SQL expression for a column, limited to 0 ... ``FileSize/sessionMaximum`` so that sums don't overflow.
    static func clamped(_ column: String) -> String { "min(max(\(column), 0), \(FileSize.sessionMaximum))" }
}
