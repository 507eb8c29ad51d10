public import Foundation
public import TransferCore

/// Receives every change of a queue, in order. Set it with ``TransferQueue/setDelegate(_:)``.
///
/// Every method is optional. The queue calls all methods except ``queue(_:endpointFor:among:)`` one at a time, each after its change is
/// durable and the previous method has returned.
///
/// Implement the methods as isolated methods of an actor or a main-actor class, asynchronous or not. Their isolation determines where they
/// run. Mark async methods of a main-actor class `@MainActor`; otherwise they inherit `nonisolated` from this protocol. A slow delegate
/// never slows the queue: when 4,096 events wait for the delegate, the queue drops further events and calls ``queue(_:didMissEventsFrom:to:)``.
///
/// Methods with `will` and `did` in their names enclose a change, for example for batch updates of a view; a `will` method can't veto a change. When
/// a method is called, the order may already have changed again; the indices refer to the order at the time of the reported change. So apply the
/// changes to a ``QueueList``, created from ``TransferQueue/order()``.
public protocol TransferQueueDelegate: AnyObject, Sendable {
    /// Receives every event, before the method for its kind is called.
    ///
    /// Use it to handle all events in one place. The compiler does not report a misspelt name of the other methods, because they are optional.
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async

    // MARK: The queue

    /// The queue started; sessions may start.
    func queueDidStart(_ queue: TransferQueue) async
    /// The queue stopped: no session runs, and none starts.
    func queueDidStop(_ queue: TransferQueue) async
    /// The queue is idle: no session runs, and none can start without an action by the app or the user.
    func queueDidBecomeIdle(_ queue: TransferQueue) async
    /// Session or rate limits of the queue or of an account changed.
    func queueDidChangeLimits(_ queue: TransferQueue) async
    /// The store refuses changes, for example because the disk is full. Running sessions continue at first. If the problem persists, the queue
    /// interrupts them until the store accepts changes again.
    func queue(_ queue: TransferQueue, storageDidFail error: QueueError) async
    /// A session was quarantined, because it can't be read, or because the store refuses to change it.
    func queue(_ queue: TransferQueue, didQuarantine description: String) async
    /// The store reached a limit and deleted the oldest sessions in quarantine, or the oldest pending removals of remote content.
    func queue(_ queue: TransferQueue, didTrimStore description: String) async
    /// Events were dropped, because the delegate was too slow: read the queue's state again. Called in place of all dropped events, never
    /// between ``queueWillChange(_:orderRevision:)`` and ``queueDidChange(_:orderRevision:)``.
    func queue(_ queue: TransferQueue, didMissEventsFrom first: UInt64, to last: UInt64) async

    // MARK: The order: exactly one of didAdd, didRemove and didMove between queueWillChange and queueDidChange

    /// The order is about to change.
    func queueWillChange(_ queue: TransferQueue, orderRevision: UInt64) async
    /// Sessions were added next to each other; the first session has this index.
    func queue(_ queue: TransferQueue, didAdd sessions: [SessionID], at index: Int) async
    /// Sessions were removed; the indices, ascending, are those before the change.
    func queue(_ queue: TransferQueue, didRemove sessions: [SessionID], at indices: [Int]) async
    /// A session was moved; `to` is its index after the move.
    func queue(_ queue: TransferQueue, didMove session: SessionID, from: Int, to: Int) async
    /// The order has changed.
    func queueDidChange(_ queue: TransferQueue, orderRevision: UInt64) async

    // MARK: The life of a session

    /// A session is about to get a slot.
    func queue(_ queue: TransferQueue, willActivate session: SessionID) async
    /// A session has a slot.
    func queue(_ queue: TransferQueue, didActivate session: SessionID) async
    /// A session's transport is about to begin.
    func queue(_ queue: TransferQueue, willStartRunning session: SessionID) async
    /// A session's transport is connected and has moved its first bytes.
    func queue(_ queue: TransferQueue, didStartRunning session: SessionID) async
    /// A session's transport, which had started, is about to end.
    func queue(_ queue: TransferQueue, willStopRunning session: SessionID) async
    /// A session's transport has ended.
    func queue(_ queue: TransferQueue, didStopRunning session: SessionID) async
    /// A session is about to release its slot.
    func queue(_ queue: TransferQueue, willDeactivate session: SessionID) async
    /// A session released its slot.
    func queue(_ queue: TransferQueue, didDeactivate session: SessionID) async
    /// Sessions changed to this state. Called only for changes that no other method reports.
    func queue(_ queue: TransferQueue, didChange sessions: [SessionID], to state: SessionState) async
    /// Tags, context, rates or policies of a session changed, or items were added to it.
    func queue(_ queue: TransferQueue, didUpdate session: SessionID) async
    /// All items of a session arrived.
    func queue(_ queue: TransferQueue, didComplete session: SessionID) async
    /// A session ended with an error.
    func queue(_ queue: TransferQueue, didFail session: SessionID, with error: TransferError) async
    /// The app cancelled sessions.
    func queue(_ queue: TransferQueue, didCancel sessions: [SessionID]) async

    // MARK: What a running session does

    /// Bytes moved. Called at most ten times a second for each session.
    func queue(_ queue: TransferQueue, session: SessionID, didProgress statistics: SessionStatistics) async
    /// An item arrived.
    func queue(_ queue: TransferQueue, session: SessionID, didCompleteItem position: Int64, _ receipt: TransferReceipt) async
    /// An item failed. The session does not retry the item automatically.
    func queue(_ queue: TransferQueue, session: SessionID, didFailItem position: Int64, with error: TransferError) async
    /// An item restarts at byte 0; the error is the reason.
    func queue(_ queue: TransferQueue, session: SessionID, didRestartItem position: Int64, because error: TransferError) async
    /// An attempt failed. The queue retries at the given time.
    func queue(_ queue: TransferQueue, session: SessionID, didFailAttempt error: TransferError, retryAt: Date) async
    /// The session switched to another endpoint. Not called for the first endpoint, so `previous` is not nil.
    func queue(_ queue: TransferQueue, session: SessionID, didChangeEndpointFrom previous: String?, to endpoint: String) async

    // MARK: Questions

    /// Returns the endpoint that a session uses; nil for the queue's choice, which is the first reachable endpoint.
    ///
    /// This method is a question, not an event. The queue calls it for a running session with two or more available endpoints: before the
    /// first file of each run, and whenever the available endpoints change. The call can overlap with other methods, and with calls for other
    /// sessions. The session keeps its slot while it waits for the result, and stops waiting if it is interrupted; other sessions do not
    /// wait. A result that is not in `endpoints` is ignored, with a warning in the log.
    ///
    /// The result only replaces the account's order of endpoints. A file with confirmed bytes still stays at its endpoint, under the same
    /// rules as without this method. An endpoint that was just unreachable is still skipped.
    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint?

    // MARK: Accounts

    /// The account was blocked: its sessions don't start until the app or the user acts.
    func queue(_ queue: TransferQueue, didBlockAccount account: String, because error: TransferError) async
    /// The account was unblocked: its sessions may start again.
    func queue(_ queue: TransferQueue, didUnblockAccount account: String) async
    /// The account's credentials were refused or can't be read. Returns how to continue.
    ///
    /// Called once, regardless of the number of waiting sessions. If the account is still blocked when the next process starts the queue, the
    /// method is called again. It is also called again if credentials are refused after ``CredentialsAnswer/retry``. In this case, the queue waits
    /// before it retries: 1 s at first, and twice as long each time, up to 5 min.
    ///
    /// Later events wait until this method returns. To ask the user, return ``CredentialsAnswer/later`` at once, and call
    /// ``TransferQueue/unblockAccount(_:)`` when new credentials exist.
    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsAnswer
}

/// The response of a delegate to a request for credentials.
public enum CredentialsAnswer: Hashable, Sendable {
    /// The account stays blocked until it is unblocked or saved again. This is the default.
    case later
    /// The account's credentials are valid now. The queue unblocks the account, so its sessions start again.
    case retry
}
