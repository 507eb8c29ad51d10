public import Foundation
public import TransferCore

/// An event of the queue. An event that reports a stored change is sent after the change is durable.
public struct QueueEvent: Hashable, Sendable {
    /// The number of the event. It increases by one with each stored event, even across restarts of the process. The unstored events
    /// ``Kind/progress(_:_:)``, ``Kind/totalProgress(_:)``, ``Kind/itemStarted(_:position:)``, ``Kind/itemProgress(_:position:_:)``,
    /// ``Kind/streamDelayed(_:position:)``, ``Kind/storageFailed(_:)`` and ``Kind/storeTrimmed(_:)`` have the number of the preceding
    /// event. So does a ``Kind/attemptFailed(_:_:retryAt:)`` of a stream that waits for disk space. A ``Kind/gap(from:to:)`` has the last number
    /// of its range.
    public var revision: UInt64
    /// The time of the event.
    public var time: Date
    /// The kind of event, with its details.
    public var kind: Kind
    /// The app's context value for the session, if the session is running in this process. Not encoded, and not compared.
    package var context: Data?

    package init(revision: UInt64, time: Date, kind: Kind) {
        self.revision = revision
        self.time = time
        self.kind = kind
    }

    /// The kinds of events. The list is not exhaustive: a `switch` needs a `default`.
    ///
    /// Events whose names begin with `will` and `did` enclose a change. Both are sent after the change was stored.
    public enum Kind: Hashable, Sendable {
        // The queue.

        /// The queue was started: sessions may start.
        case queueStarted
        /// The queue has stopped: no session runs or starts.
        case queueStopped
        /// No session runs, and none can start without an action by the app or the user.
        case queueBecameIdle
        /// A limit of the queue or of an account was set: the maximum number of active sessions, the rate limit, its timetable, the retention of
        /// completed sessions, or the minimum of free disk space.
        case limitsChanged
        /// The database accepts no changes, for example because the disk is full. Running sessions continue at first, and their changes are stored
        /// once the database accepts changes again. If the problem persists, the queue interrupts the sessions until the database accepts changes
        /// again. The code `storageDamaged` can also mean that only some data in the database is damaged. Then only the sessions that need this data
        /// wait.
        case storageFailed(QueueError)
        /// A session was quarantined, because it can't be read, or because the database refuses to change it. The text describes the session and the
        /// reason.
        case quarantined(String)
        /// The database reached a limit, so the queue deleted the oldest sessions in quarantine, or dropped the oldest pending removals of remote
        /// content. The text contains their number. Not stored.
        case storeTrimmed(String)
        /// The statistics of the whole queue, at the interval ``QueueConfiguration/totalProgressInterval`` while sessions run, and once after the
        /// last run. Not sent without such an interval; never stored.
        case totalProgress(QueueStatistics)
        /// Events are missing: this subscriber did not read them in time, the change log does not contain them, or this version can't read
        /// them. Read the current state again. A gap never begins or ends between a `willChangeQueue` and its `didChangeQueue`.
        case gap(from: UInt64, to: UInt64)

        // The order. Between `willChangeQueue` and `didChangeQueue` there is exactly one of `added`, `removed` and `moved`.

        /// The order will change to this revision.
        case willChangeQueue(orderRevision: UInt64)
        /// The order has changed to this revision.
        case didChangeQueue(orderRevision: UInt64)
        /// Sessions were added at consecutive indices. The first session has this index.
        case added([SessionID], index: Int)
        /// Sessions were removed. The indices are in ascending order and refer to the order before the change.
        case removed([SessionID], indices: [Int])
        /// A session was moved; `to` is its index after the move.
        case moved(SessionID, from: Int, to: Int)
        /// Drafts were removed. Drafts are not in the order, so this event is not between `willChangeQueue` and `didChangeQueue`.
        ///
        /// If a draft is enqueued, the queue sends ``added(_:index:)``. For a new draft, it sends ``changed(_:_:)`` with the state `draft`.
        case draftsRemoved([SessionID])

        // The states of a session.

        /// A session will get a slot.
        case willActivate(SessionID)
        /// A session has a slot.
        case didActivate(SessionID)
        /// The transport of a session will start its work.
        case willStartRunning(SessionID)
        /// The transport of a session has transferred its first bytes, or has saved a checkpoint that covers bytes.
        case didStartRunning(SessionID)
        /// The transport of a session will stop its work. Sent only after ``didStartRunning(_:)``.
        case willStopRunning(SessionID)
        /// The transport of a session has stopped its work.
        case didStopRunning(SessionID)
        /// A session will release its slot.
        case willDeactivate(SessionID)
        /// A session has released its slot.
        case didDeactivate(SessionID)
        /// Sessions changed to this state. Sent only for changes that no other event reports.
        case changed([SessionID], SessionState)
        /// Properties of a session changed (see ``SessionUpdate``), or items of the session were added or replaced.
        case updated(SessionID)
        /// Every item of a session is at its destination or was skipped.
        case completed(SessionID)
        /// A session ended with an error.
        case failed(SessionID, TransferError)
        /// The app cancelled these sessions.
        case cancelled([SessionID])

        // The work of a running session.

        /// The statistics of a running session changed. At most ten events a second for each session; never stored.
        case progress(SessionID, SessionStatistics)
        /// An item starts or resumes: its first attempt in a run begins, or its first attempt after a wait of more than a second. Only for sessions
        /// with ``SessionOptions/reportsItemProgress``; never stored.
        case itemStarted(SessionID, position: Int64)
        /// The progress of an item in flight changed. At most ten events a second for each item, and none after the item has ended. Only for sessions
        /// with ``SessionOptions/reportsItemProgress``; never stored.
        case itemProgress(SessionID, position: Int64, ItemProgress)
        /// The transport sends an item's stream only after the stream has ended. Either the server requires the length, or the transport needs the
        /// whole content first. Until then, the storage folder needs space for the whole stream. Sent at most once for each stream in a process;
        /// never stored.
        case streamDelayed(SessionID, position: Int64)
        /// An item is at its destination. Sent for each file of a folder, but not for the folder.
        case itemCompleted(SessionID, position: Int64, TransferReceipt)
        /// An item failed. The session does not retry the item automatically.
        case itemFailed(SessionID, position: Int64, TransferError)
        /// An item restarts from byte 0. The error is the reason.
        case itemRestarted(SessionID, position: Int64, TransferError)
        /// An attempt failed and will be retried at this time. Also sent, but not stored, when a stream begins to wait for disk space.
        case attemptFailed(SessionID, TransferError, retryAt: Date)
        /// The session switched to an endpoint with another address. The queue does not send this event for the first endpoint, so it never sets
        /// `from` to nil.
        case endpointChanged(SessionID, from: String?, to: String)

        // Accounts.

        /// No session of this account starts until the app or the user acts.
        case accountBlocked(account: String, TransferError)
        /// The account's sessions may start again.
        case accountUnblocked(account: String)
        /// The account's credentials were rejected or can't be read. Sent once each time the account is blocked for this reason. Sent
        /// again if the account is still blocked when the next process starts the queue.
        case needsCredentials(account: String, TransferError)
    }

    /// The session that the event concerns; nil for events that concern the queue, an account, or several sessions.
    public var session: SessionID? {
        switch kind {
        case .willActivate(let id), .didActivate(let id), .willStartRunning(let id), .didStartRunning(let id), .willStopRunning(let id),
            .didStopRunning(let id), .willDeactivate(let id), .didDeactivate(let id), .updated(let id), .completed(let id):
            id
        case .moved(let id, _, _), .failed(let id, _), .progress(let id, _), .attemptFailed(let id, _, _), .endpointChanged(let id, _, _):
            id
        case .itemCompleted(let id, _, _), .itemFailed(let id, _, _), .itemRestarted(let id, _, _), .itemStarted(let id, _),
            .itemProgress(let id, _, _), .streamDelayed(let id, _):
            id
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids), .draftsRemoved(let ids):
            ids.count == 1 ? ids.first : nil
        case .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged, .storageFailed, .quarantined, .storeTrimmed, .totalProgress,
            .gap, .willChangeQueue, .didChangeQueue, .accountBlocked, .accountUnblocked, .needsCredentials:
            nil
        }
    }

    /// Compares everything but the context, which events from the change log do not contain.
    public static func == (first: QueueEvent, second: QueueEvent) -> Bool {
        first.revision == second.revision && first.time == second.time && first.kind == second.kind
    }

    /// Hashes the revision, which almost always identifies an event.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(revision)
    }

    /// Returns whether the event concerns this session, alone or among others.
    public func concerns(_ id: SessionID) -> Bool {
        switch kind {
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids), .draftsRemoved(let ids): ids.contains(id)
        default: session == id
        }
    }

    /// Whether the event reports only progress, so that a newer event can replace it.
    package var isProgress: Bool {
        switch kind {
        case .progress, .itemProgress, .totalProgress: true
        default: false
        }
    }

    /// Whether the event reports newer progress of the same session, item or queue.
    func replaces(_ earlier: QueueEvent) -> Bool {
        switch (kind, earlier.kind) {
        case (.progress(let id, _), .progress(let other, _)): id == other
        case (.itemProgress(let id, let position, _), .itemProgress(let other, let otherPosition, _)):
            id == other && position == otherPosition
        case (.totalProgress, .totalProgress): true
        default: false
        }
    }

    var sessions: [SessionID] {
        switch kind {
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids), .draftsRemoved(let ids): ids
        default: session.map { [$0] } ?? []
        }
    }
}

/// The progress of an item in flight, or of a file of a folder.
public struct ItemProgress: Hashable, Sendable, Codable {
    /// The size in bytes; nil while it is unknown.
    public var bytesTotal: Int64?
    /// The number of confirmed bytes, including bytes from earlier attempts.
    public var bytesDone: Int64
    /// The number of bytes that the network accepted or delivered, whether confirmed or not; at least ``bytesDone``.
    public var bytesSent: Int64

    package init(bytesTotal: Int64?, bytesDone: Int64, bytesSent: Int64) {
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        self.bytesSent = bytesSent
    }
}
