import GRDB

/// How much there is to do and how much of it is done: of one session, or of several together.
package struct SessionFigures: Sendable, Equatable {
    package var files: Int64 = 0
    package var filesDone: Int64 = 0
    package var filesFailed: Int64 = 0
    package var bytesTotal: Int64 = 0
    package var bytesDone: Int64 = 0

    package init() {}

    /// Columns of a row, from the second on.
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

    /// What items come to, in bytes: at most what the store accepts of a session.
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

    /// State and figures of sessions. Damaged numbers are bounded, so that sums stay within what a number holds.
    static let selection = "SELECT state, \(columns) FROM session JOIN schedule ON schedule.session = session.key"

    /// As ``selection``, without the bytes that checkpoints vouch for, which are a row each.
    static let selectionWithoutCheckpoints = "SELECT state, \(ownColumns) FROM session JOIN schedule ON schedule.session = session.key"

    /// The most that a checkpoint of a file vouches for.
    static let mostConfirmed = clamped("max(confirmed)")

    private static let ownColumns = "\(counts), \(clamped("bytes_done")) AS bytes_done"

    private static let counts = """
        \(clamped("files")) AS files, \(clamped("files_done")) AS files_done, \(clamped("files_failed")) AS files_failed,
            \(clamped("bytes_total")) AS bytes_total
        """

    /// Columns for a selection from the table of sessions.
    static let columns = "\(counts), \(clamped("bytes_done")) + \(confirmed) AS bytes_done"

    /// What checkpoints vouch for of a session. Sums of integers fail beyond what a number holds; only those of damaged rows come that far.
    static let confirmed = """
        CAST(min((SELECT total(most) FROM (SELECT \(mostConfirmed) AS most FROM checkpoint
            WHERE checkpoint.session = session.key GROUP BY position)), \(FileSize.sessionMaximum)) AS INTEGER)
        """

    /// A number of a row as part of a sum: not negative, and at most what a session has.
    static func clamped(_ column: String) -> String { "min(max(\(column), 0), \(FileSize.sessionMaximum))" }
}
