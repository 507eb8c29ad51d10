import GRDB

/// The reason why the database rejected a list of changes.
package struct StoreRefusal: Error {
    /// A change that the database would reject again.
    package struct Culprit: Sendable, Equatable {
        /// The index of the change in the list.
        package var index: Int
        /// Whether the change has more bytes than a row can contain.
        package var isTooLarge: Bool
    }

    package var error: QueueError
    /// The responsible change; nil if no single change is responsible, for example if the disk is full.
    package var culprit: Culprit?
}

/// A change that could not be applied to the database.
struct RefusedWrite: Error {
    let index: Int
    let reason: any Error

    /// Whether a retry would fail in the same way, because the change itself or a damaged row is the cause. A ``QueueError`` means that the rows
    /// do not permit the change. Otherwise, the disk, another process or the machine is the cause (sqlite.org/rescode.html).
    var isPermanent: Bool {
        guard let error = reason as? DatabaseError else {
            return reason is EncodingError || reason is DecodingError || reason is RowDecodingError
                || reason is UnreadableColumn || reason is QueueError
        }
        return switch error.resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_RANGE, .SQLITE_TOOBIG, .SQLITE_CORRUPT: true
        default: false
        }
    }

    var culprit: StoreRefusal.Culprit? {
        guard isPermanent else { return nil }
        return StoreRefusal.Culprit(index: index, isTooLarge: (reason as? DatabaseError)?.resultCode == .SQLITE_TOOBIG)
    }
}
