public import Foundation
public import TransferCore

/// One thing that happened, sent after it was made durable.
public struct QueueEvent: Sendable {
    /// Grows by one with each event of this process, progress aside: that carries the number of the event before it.
    public var revision: UInt64
    /// When it happened.
    public var time: Date
    /// What happened.
    public var kind: Kind

    /// What can happen. The list is open: a `switch` needs a `default`.
    public enum Kind: Sendable {
        /// Sessions may start from now on.
        case queueStarted
        /// Nothing runs any more, and nothing starts.
        case queueStopped
        /// Nothing runs and nothing can start without a person.
        case queueBecameIdle
        /// The store does not take changes, for example because the disk is full. What runs goes on and is stored once that works again.
        case storageFailed(QueueError)
        /// Events were dropped, as this subscriber did not take them in time: read the present state again.
        case gap(from: UInt64, to: UInt64)
        /// A session was added.
        case added(SessionID, index: Int)
        /// A session was removed.
        case removed(SessionID, index: Int)
        /// A session got a slot and its transport begins.
        case started(SessionID)
        /// Bytes moved. At most ten a second and session.
        case progress(SessionID, SessionStatistics)
        /// An item arrived.
        case itemCompleted(SessionID, position: Int64, TransferReceipt)
        /// An item was given up.
        case itemFailed(SessionID, position: Int64, TransferError)
        /// An item begins again at byte 0; the error says why.
        case itemRestarted(SessionID, position: Int64, TransferError)
        /// An attempt failed and will be repeated at the time given.
        case attemptFailed(SessionID, TransferError, retryAt: Date)
        /// A session gave its slot back without having ended: the queue was stopped, or the session waits to be tried again.
        case stopped(SessionID)
        /// All items arrived.
        case completed(SessionID)
        /// The session ended with an error.
        case failed(SessionID, TransferError)
        /// No session of this account starts until a person acts.
        case accountBlocked(account: String, TransferError)
        /// The account's sessions may start again.
        case accountUnblocked(account: String)
    }

    /// The session that the event is about; nil for those about the queue or an account.
    public var session: SessionID? {
        switch kind {
        case .queueStarted, .queueStopped, .queueBecameIdle, .storageFailed, .gap, .accountBlocked, .accountUnblocked: nil
        case .added(let id, _), .removed(let id, _), .started(let id), .progress(let id, _), .stopped(let id), .completed(let id): id
        case .itemCompleted(let id, _, _), .itemFailed(let id, _, _), .itemRestarted(let id, _, _): id
        case .attemptFailed(let id, _, _), .failed(let id, _): id
        }
    }

    var isProgress: Bool {
        if case .progress = kind { true } else { false }
    }
}
