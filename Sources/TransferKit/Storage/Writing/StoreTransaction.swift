import Foundation

/// The state shared by the changes of one transaction.
struct StoreTransaction {
    /// The time of the transaction.
    let now: Date
    /// Spool files without remaining references.
    var freed: [Data] = []
    /// The number of rows of removed sessions that the transaction may still delete. ``QueueStore/sweep(_:leavingOut:)`` deletes the rest.
    var rowsToSweep: Int
    /// Whether rows are left for later transactions.
    var leavesRows = false
}

/// The maintenance that transactions left for later.
package struct PendingMaintenance: Sendable {
    /// Whether rows of removed sessions are left for ``DeferredDeletion``.
    package var hasRowsToSweep = false
    /// Whether the discard outbox has due entries, of this transaction or of an earlier one.
    package var hasDueDiscards = false
}
