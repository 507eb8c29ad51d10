package import Foundation
package import TransferCore

/// One change of the store; a transaction is a list of them.
package enum StoreWrite: Sendable {
    case saveAccount(AccountKey, Account)
    case deleteAccount(AccountKey)
    case blockAccount(AccountKey, AccountBlock?)
    case settings(orderRevision: UInt64, sessionLimit: Int, rateLimit: Int64?)

    case insertSession(ScheduleRow, SessionDraft, createdAt: Date)
    /// All that the scheduler has to know of a session after a restart.
    case schedule(ScheduleRow)
    case updateSession(SessionKey, SessionUpdate)
    case addItems(SessionKey, [ItemDraft])
    /// Failed items are to be done again, or, if `isWhole`, all of them.
    case resetSession(SessionKey, isWhole: Bool)
    /// Puts what it left at its servers into the discard outbox.
    case deleteSession(SessionKey)
    /// Sets a session that can't be read aside.
    case quarantine(SessionKey, String)

    case beginSession(SessionKey, Date)
    case setEndpoint(SessionKey, String, TransportID)
    case attemptFailed(SessionKey, TransferError, isRepeated: Bool)
    case endSession(SessionKey, TransferError?, Date)
    case file(SessionKey, position: Int64, FileReport)

    /// Puts what a session left at its servers into the discard outbox.
    case discardPartial(SessionKey)
    case discard(Checkpoint, Endpoint)
    case discarded(Int64)
    case discardFailed(Int64, nextAttempt: Date)
}

extension StoreWrite {
    /// Whether something may be in the discard outbox because of it.
    var mayDiscard: Bool {
        switch self {
        case .deleteSession, .discardPartial, .discard, .resetSession, .file(_, position: _, .restarted), .file(_, position: _, .completed): true
        default: false
        }
    }
}
