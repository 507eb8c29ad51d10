package import Foundation
package import TransferCore

/// One change of the store; a transaction is a list of them.
package enum StoreWrite: Sendable {
    case saveAccount(AccountKey, Account)
    case deleteAccount(AccountKey)
    case blockAccount(AccountKey, AccountBlock?)
    case settings(orderRevision: UInt64, sessionLimit: Int?, rateLimit: Int64?)

    case insertSessions(NewSessions)
    /// All that the scheduler has to know of a session after a restart.
    case schedule(ScheduleRow)
    case updateSession(SessionKey, SessionUpdate)
    case addItems(SessionKey, [ItemDraft])
    case expansion(SessionKey, ExpansionStep)
    /// Failed items are to be done again, or, if `isWhole`, all of them.
    case resetSession(SessionKey, isWhole: Bool)
    /// The next piece of that, if a session has more files than one transaction takes.
    case continueReset(SessionKey)
    /// Puts what it left at its servers into the discard outbox; while it runs, only to be kept there until its run has let go.
    case deleteSession(SessionKey, isRunning: Bool = false)
    /// Sets a session that can't be read aside.
    case quarantine(SessionKey, String)
    /// The rows of a session in quarantine are back in their tables: it takes its place again.
    case restoreSession(SessionKey, quarantine: Int64)

    case beginSession(SessionKey, Date)
    case setEndpoint(SessionKey, String, TransportID)
    case attemptFailed(SessionKey, TransferError, isRepeated: Bool)
    case endSession(SessionKey, TransferError?, Date)
    case file(SessionKey, position: Int64, FileReport)
    /// A session, nil for one that is gone, ran for so many milliseconds more, and the queue as a whole.
    case ran(SessionKey?, Int64, queue: Int64)

    /// Puts what a session left at its servers into the discard outbox, or a piece of that if there is very much.
    case discardPartial(SessionKey)
    /// The next piece of that; nothing if the session was told to run again.
    case continueDiscard(SessionKey)
    /// What the run of a removed session saved before it let go.
    case holdDiscard(SessionKey, position: Int64, Checkpoint, Endpoint)
    /// A removed session's run completed a file after all: that is not to be touched.
    case dropDiscard(SessionKey, position: Int64, Endpoint)
    /// The run of a removed session has let go: what it left may be removed.
    case releaseDiscards(SessionKey)
    case discarded(Int64)
    case discardFailed(Int64, nextAttempt: Date, leftAloneUntil: Date?)
    case postponeDiscards(DiscardPostponement)
    /// Removals that are due in a far future, as the date was another one when they were put off, are due now.
    case clampDiscards

    /// The date and the steady date at present.
    case clock(seen: Date, steady: Date)

    /// Appends to the change log, which keeps the last so many events.
    case events([QueueEvent], keeping: Int)
}

extension StoreWrite {
    /// Whether something may be in the discard outbox because of it.
    var mayDiscard: Bool {
        switch self {
        case .deleteSession, .discardPartial, .continueDiscard, .releaseDiscards, .resetSession, .continueReset,
            .file(_, position: _, .restarted),
            .file(_, position: _, .completed), .file(_, position: _, .failed), .file(_, position: _, .foundFolder):
            true
        default: false
        }
    }
}

extension StoreWrite {
    /// The session that it is about; nil if it is about none, or about one that does not exist before.
    var session: SessionKey? {
        switch self {
        case .schedule(let row): row.entry.key
        case .updateSession(let key, _), .addItems(let key, _), .expansion(let key, _), .resetSession(let key, _), .continueReset(let key),
            .deleteSession(let key, _),
            .quarantine(let key, _), .restoreSession(let key, _), .beginSession(let key, _), .setEndpoint(let key, _, _),
            .attemptFailed(let key, _, _),
            .endSession(let key, _, _), .file(let key, _, _), .discardPartial(let key), .continueDiscard(let key),
            .holdDiscard(let key, _, _, _),
            .dropDiscard(let key, _, _), .releaseDiscards(let key):
            key
        case .ran(let key, _, _): key
        case .saveAccount, .deleteAccount, .blockAccount, .settings, .insertSessions, .discarded, .discardFailed, .postponeDiscards,
            .clampDiscards, .clock, .events:
            nil
        }
    }
}
