import Foundation

/// The state shared by the changes of one transaction.
struct StoreTransaction {
    let now: Date
    /// Spool files without remaining references.
    var freed: [Data] = []
    /// The number of rows that the transaction may still delete, move or reset because of changes to whole sessions. All removals and
    /// quarantines of sessions, resets of files, and moves of checkpoints into the outbox (``DiscardQuery``) share this number. For the
    /// remaining rows, see ``QueueStore/sweep(_:leavingOut:)`` and ``QueueStore/finishMarked()``.
    var rowsToSweep: Int
    /// The sessions that the transaction removes, but whose unfinished uploads and part files stay for another queue.
    var sessionsKeepingContent: Set<SessionKey> = []
    var leavesDeferredWork = false
}

/// The maintenance that transactions left for later.
package struct PendingMaintenance: Sendable {
    /// Whether work is left for ``DeferredDeletion``, such as rows of removed sessions.
    package var hasDeferredWork = false
    /// Whether removals (``DiscardQuery``) are due, from this or an earlier transaction. Checked only if the transaction has a change that can
    /// make removals due (``StoreWrite/mayDiscard``); false otherwise.
    package var hasDueDiscards = false
}
