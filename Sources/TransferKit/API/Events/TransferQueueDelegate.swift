public import Foundation
public import TransferCore

/// Receives every change of a queue, in order. Set it with ``TransferQueue/setDelegate(_:)``.
///
/// Every method is optional. The queue calls all methods except ``queue(_:endpointFor:among:)`` one at a time, each after its change is
/// durable and the previous method has returned.
///
/// Implement the methods in an actor or a main-actor class, as isolated methods, asynchronous or not; the isolation determines where they
/// run. Mark async methods of a main-actor class `@MainActor`; otherwise they inherit `nonisolated` from this protocol. A slow delegate
/// never slows the queue: when 4,096 events wait for it, the queue drops further ones and calls ``queue(_:didMissEventsFrom:to:)``.
///
/// Methods with `will` and `did` in their names are brackets for batch updates of a view; a `will` method can't veto a change. Indices are
/// those at the time of the change, not those at the time of the call: apply the changes to a ``QueueList``, which starts with
/// ``TransferQueue/order()``.
public protocol TransferQueueDelegate: AnyObject, Sendable {
    /// Any event, before the method for its kind: one method for all events. A misspelt one of the others is never called.
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
    /// The store refuses changes, for example because the disk is full. Running sessions continue.
    func queue(_ queue: TransferQueue, storageDidFail error: QueueError) async
    /// A part of the store can't be read and was quarantined.
    func queue(_ queue: TransferQueue, didQuarantine description: String) async
    /// The store reached a limit, so the oldest sessions in quarantine, or removals that wait for servers, were deleted.
    func queue(_ queue: TransferQueue, didTrimStore description: String) async
    /// The delegate was too slow, and events were dropped: read the queue again. Called in place of all dropped events, never inside the
    /// brackets of an order change.
    func queue(_ queue: TransferQueue, didMissEventsFrom first: UInt64, to last: UInt64) async

    // MARK: The order; between the first and the last of these there is exactly one of the others

    /// The order is about to change.
    func queueWillChange(_ queue: TransferQueue, orderRevision: UInt64) async
    /// Sessions were added, contiguously; the first has this index.
    func queue(_ queue: TransferQueue, didAdd sessions: [SessionID], at index: Int) async
    /// Sessions were removed; the indices, ascending, are those before the change.
    func queue(_ queue: TransferQueue, didRemove sessions: [SessionID], at indices: [Int]) async
    /// A session was moved; the second index is the one after the move.
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
    /// A session's transport is connected, and bytes moved.
    func queue(_ queue: TransferQueue, didStartRunning session: SessionID) async
    /// A session's transport, which had started, is about to end.
    func queue(_ queue: TransferQueue, willStopRunning session: SessionID) async
    /// A session's transport has ended.
    func queue(_ queue: TransferQueue, didStopRunning session: SessionID) async
    /// A session is about to give up its slot.
    func queue(_ queue: TransferQueue, willDeactivate session: SessionID) async
    /// A session gave up its slot.
    func queue(_ queue: TransferQueue, didDeactivate session: SessionID) async
    /// Sessions changed to this state, and no other method reports it.
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
    /// The session gave up an item.
    func queue(_ queue: TransferQueue, session: SessionID, didFailItem position: Int64, with error: TransferError) async
    /// An item restarts at byte 0; the error is the reason.
    func queue(_ queue: TransferQueue, session: SessionID, didRestartItem position: Int64, because error: TransferError) async
    /// An attempt failed. The queue repeats it at the given time.
    func queue(_ queue: TransferQueue, session: SessionID, didFailAttempt error: TransferError, retryAt: Date) async
    /// The session's further attempts use another endpoint. Not called for the first endpoint, so `previous` is not nil.
    func queue(_ queue: TransferQueue, session: SessionID, didChangeEndpointFrom previous: String?, to endpoint: String) async

    // MARK: Questions

    /// Returns the endpoint that a session uses; nil for the queue's choice, which is the first reachable one.
    ///
    /// Not an event: the queue calls this method when a running session has two or more available endpoints, before its first file, and
    /// again in each run and whenever the available endpoints change. It may call it before another method has returned, and for several
    /// sessions concurrently. The session waits for the result, with its slot, until it is paused, stopped or otherwise interrupted; other
    /// sessions do not wait. A result that is not in `endpoints` is ignored, with a warning in the log.
    ///
    /// The result replaces only the account's order of endpoints. A file with confirmed bytes at another endpoint stays there as long as it
    /// would without the choice, and an endpoint that was just unreachable is skipped.
    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint?

    // MARK: Accounts

    /// The account was blocked: its sessions don't start until the app or the user acts.
    func queue(_ queue: TransferQueue, didBlockAccount account: String, because error: TransferError) async
    /// The account was unblocked: its sessions may start again.
    func queue(_ queue: TransferQueue, didUnblockAccount account: String) async
    /// The account's credentials were refused or can't be read. Returns how to continue.
    ///
    /// Called once, regardless of how many sessions wait, and again when the next process starts the queue, if the account is still blocked
    /// then. If credentials are refused again after ``CredentialsAnswer/retry``, the method is called again, and the delay before each
    /// further retry grows from 1 s, doubling up to 5 min.
    ///
    /// Later events wait for the result. To ask the user, return ``CredentialsAnswer/later``, and call ``TransferQueue/unblockAccount(_:)``
    /// when new credentials exist.
    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsAnswer
}

/// The response of a delegate to a request for credentials.
public enum CredentialsAnswer: Hashable, Sendable {
    /// The account stays blocked until it is unblocked or saved again. The default of a delegate that does not implement the method.
    case later
    /// The account's credentials are valid now: the queue unblocks the account and tries again.
    case retry
}
