import Foundation

/// The state shared by the changes of one transaction.
struct StoreTransaction {
    /// The time of the transaction.
    let now: Date
    /// Spool files without remaining references.
    var freed: [Data] = []
    /// The number of rows of removed or quarantined sessions that the transaction may still delete or move. For the other rows, see
    /// ``QueueStore/sweep(_:leavingOut:)``.
    var rowsToSweep: Int
    /// Whether work is left for later transactions.
    var leavesDeferredWork = false
}

/// The maintenance that transactions left for later.
package struct PendingMaintenance: Sendable {
    /// Whether work is left for ``DeferredDeletion``, such as rows of removed sessions.
    package var hasDeferredWork = false
    /// Whether removals of remote content or part files are due (the table `discard`), from this or an earlier transaction.
    package var hasDueDiscards = false
}
