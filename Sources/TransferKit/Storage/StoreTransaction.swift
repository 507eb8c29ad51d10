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
