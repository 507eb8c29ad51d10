package import Foundation
package import TransferCore

/// A change to the database.
package enum StoreWrite: Sendable {
    case saveAccount(AccountKey, Account)
    case deleteAccount(AccountKey)
    case blockAccount(AccountKey, AccountBlock?)
    case settings(QueueSettings)

    case insertSessions(NewSessions)
    /// Stores a session's scheduling data, which the scheduler of the next process needs.
    case schedule(ScheduleRow)
    case updateSession(SessionKey, SessionUpdate)
    /// Assigns another account to a session that has transferred nothing.
    case changeAccount(SessionKey, AccountKey)
    case addItems(SessionKey, [ItemDraft])
    /// Removes items whose transfer has not begun, and adds items at the end. Rejected if the rows of the items to remove have changed since
    /// the caller read them, or if no item would be left.
    case replaceItems(SessionKey, ItemSelection, ReplaceableItems, with: [ItemDraft])
    case expansion(SessionKey, ExpansionStep)
    /// Resets the failed items of a session, or all its items if `isWhole` is true.
    case resetSession(SessionKey, isWhole: Bool)
    /// Continues the reset of a session that has more files than the transaction's limit allowed.
    case continueReset(SessionKey)
    /// Deletes a session and moves its checkpoints into the outbox, the stored list of pending removals (``DiscardQuery``). If `isRunning`
    /// is true, these removals are held until the session's run has ended or was abandoned.
    case deleteSession(SessionKey, isRunning: Bool = false)
    /// Deletes checkpoints of a session that the same transaction then deletes. The unfinished uploads and part files of the session stay.
    case dropCheckpoints(SessionKey)
    /// Moves a session whose rows can't be read or changed into quarantine. The string is the reason.
    case quarantine(SessionKey, String)
    /// Ends the quarantine of a session whose rows have been moved back to their tables.
    case restoreSession(SessionKey, quarantine: Int64)

    case beginSession(SessionKey, Date)
    case setEndpoint(SessionKey, String, TransportID)
    /// Stores the error of a failed attempt. If `isRepeated` is true, the session keeps its slot for another attempt, which increases the
    /// session's number of attempts.
    case attemptFailed(SessionKey, TransferError, isRepeated: Bool)
    case endSession(SessionKey, TransferError?, Date)
    case file(SessionKey, position: Int64, FileEvent)
    /// Adds running times, in milliseconds, to a session and to the queue. The key is nil if the session was removed.
    case ran(SessionKey?, Int64, queue: Int64)
    /// Adds the time that a run's attempts spent in each phase of the transfer to the times of a session.
    case addTimes(SessionKey, TransferTimes)

    /// Moves checkpoints of a session into the outbox, as many as the transaction's limit allows.
    case discardPartial(SessionKey)
    /// Continues an incomplete move of checkpoints into the outbox. Has no effect if no move is incomplete, for example because the session
    /// was retried or has run in between.
    case continueDiscard(SessionKey)
    /// Adds a removal to the outbox for a checkpoint that the unfinished run of a removed session saved. The removal is held until the run
    /// has ended or was abandoned.
    case holdDiscard(SessionKey, position: Int64, Checkpoint, Endpoint)
    /// Deletes the held removal of a file, because the run of a removed session completed the file. A completed file must not be removed.
    case dropDiscard(SessionKey, position: Int64, Endpoint)
    /// Releases the held removals of a removed session, because its run has ended or was abandoned.
    case releaseDiscards(SessionKey)
    /// Deletes the finished removal with this key from the outbox.
    case discarded(Int64)
    /// Stores the time of the next attempt at the removal with this key, because an attempt failed.
    case discardFailed(Int64, nextAttempt: Date, backOffUntil: Date?)
    /// Postpones due removals at certain endpoints, and deletes removals that have expired. Postpones and deletes at most 10,000 removals each.
    case postponeDiscards(DiscardPostponement)
    /// Makes removals due now if they were postponed implausibly far because of a wrong clock. Changes at most 10,000 removals.
    case correctImplausiblyLateDiscards

    /// Stores the current date and the current steady date; see ``Scheduler/steadyDate(at:)``.
    case clock(seen: Date, steady: Date)

    /// Appends events to the change log. `keeping` is the approximate number of events that stay in the log.
    case events([QueueEvent], keeping: Int)
}

extension StoreWrite {
    /// Whether the change can add removals to the outbox that are due now, or release held removals.
    var mayDiscard: Bool {
        switch self {
        case .changeAccount, .deleteSession, .discardPartial, .continueDiscard, .releaseDiscards, .resetSession, .continueReset,
            .file(_, position: _, .restarted),
            .file(_, position: _, .completed), .file(_, position: _, .failed), .file(_, position: _, .foundFolder):
            true
        default: false
        }
    }
}

extension StoreWrite {
    /// The session that the change concerns; nil if the change concerns no session or several sessions.
    var session: SessionKey? {
        switch self {
        case .schedule(let row): row.entry.key
        case .updateSession(let key, _), .changeAccount(let key, _), .addItems(let key, _), .replaceItems(let key, _, _, _),
            .expansion(let key, _),
            .resetSession(let key, _), .continueReset(let key),
            .deleteSession(let key, _), .dropCheckpoints(let key),
            .quarantine(let key, _), .restoreSession(let key, _), .beginSession(let key, _), .setEndpoint(let key, _, _),
            .attemptFailed(let key, _, _),
            .endSession(let key, _, _), .file(let key, _, _), .discardPartial(let key), .continueDiscard(let key),
            .addTimes(let key, _), .holdDiscard(let key, _, _, _),
            .dropDiscard(let key, _, _), .releaseDiscards(let key):
            key
        case .ran(let key, _, _): key
        case .saveAccount, .deleteAccount, .blockAccount, .settings, .insertSessions, .discarded, .discardFailed, .postponeDiscards,
            .correctImplausiblyLateDiscards, .clock, .events:
            nil
        }
    }
}
