public import Foundation
public import TransferCore

/// One thing that happened, sent after it was made durable.
public struct QueueEvent: Hashable, Sendable {
    /// Grows by one with each event, over restarts too. What is never stored, ``Kind/progress(_:_:)``, ``Kind/storageFailed(_:)`` and ``Kind/storeTrimmed(_:)``, carries
    /// the number of the event before it, and a ``Kind/gap(from:to:)`` the last number that it stands for.
    public var revision: UInt64
    /// When it happened.
    public var time: Date
    /// What happened.
    public var kind: Kind

    /// Makes an event.
    package init(revision: UInt64, time: Date, kind: Kind) {
        self.revision = revision
        self.time = time
        self.kind = kind
    }

    /// What can happen. The list is open: a `switch` needs a `default`.
    ///
    /// Events whose names begin with `will` and `did` are brackets: what they tell was decided, and both are sent after it was stored.
    public enum Kind: Hashable, Sendable {
        // The queue.

        /// Sessions may start from now on.
        case queueStarted
        /// Nothing runs any more, and nothing starts.
        case queueStopped
        /// Nothing runs and nothing can start without a person.
        case queueBecameIdle
        /// Limits or rates of the queue or of an account changed.
        case limitsChanged
        /// The store does not take changes, for example because the disk is full: what runs goes on and is stored once that works again. Or it is
        /// damaged where a session needs it (`storageDamaged`): that one waits.
        case storageFailed(QueueError)
        /// A part of the store can't be read and was set aside; the text says which and why.
        case quarantined(String)
        /// The store had reached a limit, so the oldest sessions in quarantine, or the oldest removals that wait for servers, were deleted; the text
        /// says how many. Not stored.
        case storeTrimmed(String)
        /// Events are missing, as this subscriber did not take them in time, as they are older than the change log, or as a later version wrote
        /// them: read the present state again. A gap never begins or ends between a `willChangeQueue` and its `didChangeQueue`.
        case gap(from: UInt64, to: UInt64)

        // The order. Between `willChangeQueue` and `didChangeQueue` there is exactly one event of these.

        /// The order is about to change to this revision.
        case willChangeQueue(orderRevision: UInt64)
        /// The order has changed to this revision.
        case didChangeQueue(orderRevision: UInt64)
        /// Sessions were added, the first at this index, the others behind it.
        case added([SessionID], index: Int)
        /// Sessions were removed; the indices, ascending, are those before the change.
        case removed([SessionID], indices: [Int])
        /// A session was moved; the second index is the one that it has afterwards.
        case moved(SessionID, from: Int, to: Int)

        // The life of a session.

        /// A session gets a slot.
        case willActivate(SessionID)
        /// A session has a slot.
        case didActivate(SessionID)
        /// Its transport begins.
        case willStartRunning(SessionID)
        /// Its transport is connected, and something moved.
        case didStartRunning(SessionID)
        /// Its transport, after it had started, ends.
        case willStopRunning(SessionID)
        /// Its transport has let go.
        case didStopRunning(SessionID)
        /// It gives its slot up.
        case willDeactivate(SessionID)
        /// It gave its slot up.
        case didDeactivate(SessionID)
        /// Sessions are in this state now, without anything else that tells so.
        case changed([SessionID], SessionState)
        /// Tags, context, rates or policies of a session changed, or items were added to it.
        case updated(SessionID)
        /// All items arrived.
        case completed(SessionID)
        /// The session ended with an error.
        case failed(SessionID, TransferError)
        /// The app ended these sessions.
        case cancelled([SessionID])

        // What a running session does.

        /// Bytes moved. At most ten a second and session; never stored.
        case progress(SessionID, SessionStatistics)
        /// An item arrived.
        case itemCompleted(SessionID, position: Int64, TransferReceipt)
        /// An item was given up.
        case itemFailed(SessionID, position: Int64, TransferError)
        /// An item begins again at byte 0; the error says why.
        case itemRestarted(SessionID, position: Int64, TransferError)
        /// An attempt failed and will be repeated at the time given.
        case attemptFailed(SessionID, TransferError, retryAt: Date)
        /// The session's attempts use another address from now on. Its first address is no change, so `from` is nil only if an app makes such
        /// an event itself.
        case endpointChanged(SessionID, from: String?, to: String)

        // Accounts.

        /// No session of this account starts until a person acts.
        case accountBlocked(account: String, TransferError)
        /// The account's sessions may start again.
        case accountUnblocked(account: String)
        /// The account's credentials were refused or can't be read. Asked once, however many sessions wait for the answer.
        case needsCredentials(account: String, TransferError)
    }

    /// The session that the event is about; nil for those about the queue, an account, or several sessions.
    public var session: SessionID? {
        switch kind {
        case .willActivate(let id), .didActivate(let id), .willStartRunning(let id), .didStartRunning(let id), .willStopRunning(let id),
            .didStopRunning(let id), .willDeactivate(let id), .didDeactivate(let id), .updated(let id), .completed(let id):
            id
        case .moved(let id, _, _), .failed(let id, _), .progress(let id, _), .attemptFailed(let id, _, _), .endpointChanged(let id, _, _):
            id
        case .itemCompleted(let id, _, _), .itemFailed(let id, _, _), .itemRestarted(let id, _, _): id
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids): ids.count == 1 ? ids.first : nil
        case .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged, .storageFailed, .quarantined, .storeTrimmed, .gap,
            .willChangeQueue,
            .didChangeQueue, .accountBlocked, .accountUnblocked, .needsCredentials:
            nil
        }
    }

    /// Whether the event is about this session, alone or among others.
    public func concerns(_ id: SessionID) -> Bool {
        switch kind {
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids): ids.contains(id)
        default: session == id
        }
    }

    var isProgress: Bool {
        if case .progress = kind { true } else { false }
    }

    /// The sessions that the event names.
    var sessions: [SessionID] {
        switch kind {
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids): ids
        default: session.map { [$0] } ?? []
        }
    }
}
