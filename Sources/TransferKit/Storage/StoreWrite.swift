package import Foundation
package import TransferCore

/// One change of the store; a transaction is a list of them.
package enum StoreWrite: Sendable {
    case saveAccount(AccountKey, Account)
    case deleteAccount(AccountKey)
    case blockAccount(AccountKey, AccountBlock?)
    case insertSession(SessionKey, rank: Int64, account: AccountKey, SessionDraft, createdAt: Date)
    case deleteSession(SessionKey)
    case setRunning(SessionKey, Date)
    case setWaiting(SessionKey, isInterrupted: Bool)
    case setEndpoint(SessionKey, String, TransportID)
    case attemptFailed(SessionKey, TransferError)
    case endSession(SessionKey, SessionState, TransferError?, Date)
    case file(SessionKey, position: Int64, FileReport)
    /// Appends to the change log, which keeps the last so many events.
    case events([QueueEvent], keeping: Int)
}
