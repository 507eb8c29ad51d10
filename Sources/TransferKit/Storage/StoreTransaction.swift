import Foundation

/// What the changes of one transaction have in common.
struct StoreTransaction {
    /// When it happens.
    let now: Date
    /// Files of the spool that nothing refers to any more.
    var freed: [Data] = []
    /// How many rows of sessions that are removed may still go at once; what is beyond is left to ``QueueStore/sweep(_:leavingOut:)``.
    var rowsToSweep: Int
    /// Whether some are left.
    var leavesRows = false
}

/// What a transaction left to be done later.
package struct PendingMaintenance: Sendable {
    /// Whether rows of removed sessions are left to be swept.
    package var hasRowsToSweep = false
    /// Whether there is something in the discard outbox to be removed now, of this transaction or of an earlier one.
    package var hasDueDiscards = false
}
