import GRDB

/// Why the store took none of a list of changes.
package struct StoreRefusal: Error {
    /// A change that the store would refuse again, however long one waits.
    package struct Culprit: Sendable, Equatable {
        /// Its index in the list.
        package var index: Int
        /// Whether it has more bytes than a row can hold.
        package var isTooLarge: Bool
    }

    package var error: QueueError
    /// Nil if no single change is at fault, as on a full disk.
    package var culprit: Culprit?
}

/// A change that could not be applied.
struct RefusedWrite: Error {
    let index: Int
    let reason: any Error

    /// Whether it is the row that is at fault, and not the disk, another process or the machine (sqlite.org/rescode.html).
    var isLasting: Bool {
        guard let error = reason as? DatabaseError else {
            return reason is EncodingError || reason is DecodingError || reason is RowDecodingError
                || reason is UnreadableColumn
        }
        return switch error.resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_RANGE, .SQLITE_TOOBIG, .SQLITE_CORRUPT: true
        default: false
        }
    }

    var culprit: StoreRefusal.Culprit? {
        guard isLasting else { return nil }
        return StoreRefusal.Culprit(index: index, isTooLarge: (reason as? DatabaseError)?.resultCode == .SQLITE_TOOBIG)
    }
}
