public import Foundation
public import TransferCore

/// Sees every change of a queue, in order. Set with ``TransferQueue/setDelegate(_:)``.
///
/// Every method is optional. All but one, ``queue(_:endpointFor:among:)``, are called one after the other, each after what it tells was made durable, and the next one after it returned.
/// An actor, or a class on the main actor, implements them as isolated methods, asynchronous or not, and so chooses where they run; an
/// asynchronous method of such a class is to be marked `@MainActor` by itself, as it else takes over that it is nonisolated here. A delegate that
/// is slow never slows the queue: when 4,096 events wait for it, further ones are left out, and ``queue(_:didMissEventsFrom:to:)`` says so.
///
/// Names with `will` and `did` are brackets for batch updates of a view; a `will` vetoes nothing. Indices are those at that point of the story,
/// not those at the time of the call: apply the changes to a list of your own, which begins with ``TransferQueue/sessionIDs()``.
public protocol TransferQueueDelegate: AnyObject, Sendable {
    // MARK: The queue

    /// Sessions may start from now on.
    func queueDidStart(_ queue: TransferQueue) async
    /// Nothing runs any more, and nothing starts.
    func queueDidStop(_ queue: TransferQueue) async
    /// Nothing runs and nothing can start without a person.
    func queueDidBecomeIdle(_ queue: TransferQueue) async
    /// Limits or rates of the queue or of an account changed.
    func queueDidChangeLimits(_ queue: TransferQueue) async
    /// The store does not take changes, for example because the disk is full; what runs goes on.
    func queue(_ queue: TransferQueue, storageDidFail error: QueueError) async
    /// A part of the store can't be read and was set aside.
    func queue(_ queue: TransferQueue, didQuarantine description: String) async
    /// The oldest sessions in quarantine, or removals that wait for servers, were deleted, as the store had reached a limit.
    func queue(_ queue: TransferQueue, didTrimStore description: String) async
    /// The delegate was too slow, and events were left out: read the queue again. Comes in place of all of them, never inside the brackets of a
    /// change of the order.
    func queue(_ queue: TransferQueue, didMissEventsFrom first: UInt64, to last: UInt64) async

    // MARK: The order; between the first and the last of these there is exactly one of the others

    /// The order is about to change.
    func queueWillChange(_ queue: TransferQueue, orderRevision: UInt64) async
    /// Sessions were added, the first at this index, the others behind it.
    func queue(_ queue: TransferQueue, didAdd sessions: [SessionID], at index: Int) async
    /// Sessions were removed; the indices, ascending, are those before the change.
    func queue(_ queue: TransferQueue, didRemove sessions: [SessionID], at indices: [Int]) async
    /// A session was moved; the second index is the one that it has afterwards.
    func queue(_ queue: TransferQueue, didMove session: SessionID, from: Int, to: Int) async
    /// The order has changed.
    func queueDidChange(_ queue: TransferQueue, orderRevision: UInt64) async

    // MARK: The life of a session

    /// A session gets a slot.
    func queue(_ queue: TransferQueue, willActivate session: SessionID) async
    /// A session has a slot.
    func queue(_ queue: TransferQueue, didActivate session: SessionID) async
    /// Its transport begins.
    func queue(_ queue: TransferQueue, willStartRunning session: SessionID) async
    /// Its transport is connected, and something moved.
    func queue(_ queue: TransferQueue, didStartRunning session: SessionID) async
    /// Its transport, after it had started, ends.
    func queue(_ queue: TransferQueue, willStopRunning session: SessionID) async
    /// Its transport has let go.
    func queue(_ queue: TransferQueue, didStopRunning session: SessionID) async
    /// It gives its slot up.
    func queue(_ queue: TransferQueue, willDeactivate session: SessionID) async
    /// It gave its slot up.
    func queue(_ queue: TransferQueue, didDeactivate session: SessionID) async
    /// Sessions are in this state now, without anything else that tells so.
    func queue(_ queue: TransferQueue, didChange sessions: [SessionID], to state: SessionState) async
    /// Tags, context, rates or policies of a session changed, or items were added to it.
    func queue(_ queue: TransferQueue, didUpdate session: SessionID) async
    /// All items arrived.
    func queue(_ queue: TransferQueue, didComplete session: SessionID) async
    /// The session ended with an error.
    func queue(_ queue: TransferQueue, didFail session: SessionID, with error: TransferError) async
    /// The app ended these sessions.
    func queue(_ queue: TransferQueue, didCancel sessions: [SessionID]) async

    // MARK: What a running session does

    /// Bytes moved. At most ten times a second and session.
    func queue(_ queue: TransferQueue, session: SessionID, didProgress statistics: SessionStatistics) async
    /// An item arrived.
    func queue(_ queue: TransferQueue, session: SessionID, didCompleteItem position: Int64, _ receipt: TransferReceipt) async
    /// An item was given up.
    func queue(_ queue: TransferQueue, session: SessionID, didFailItem position: Int64, with error: TransferError) async
    /// An item begins again at byte 0; the error says why.
    func queue(_ queue: TransferQueue, session: SessionID, didRestartItem position: Int64, because error: TransferError) async
    /// An attempt failed and will be repeated at the time given.
    func queue(_ queue: TransferQueue, session: SessionID, didFailAttempt error: TransferError, retryAt: Date) async
    /// The session's attempts use another address from now on. Not called for its first address, so `previous` is not nil.
    func queue(_ queue: TransferQueue, session: SessionID, didChangeEndpointFrom previous: String?, to endpoint: String) async

    // MARK: Questions

    /// Which of the account's endpoints that may be asked now the session is to use; nil for the queue's own choice, the first of them that
    /// can be reached.
    ///
    /// Not an event: asked when a session that runs has two endpoints or more to choose from, before its first file, and again in each run and
    /// whenever there are others to choose from. May be called while another method has not returned, and for several sessions at once. The
    /// session waits for the answer, with its slot, until it is paused, stopped or the like; no other session does. An answer that is not among
    /// `endpoints` is ignored, with a warning in the log.
    ///
    /// The answer takes the place of the account's order, and of nothing else. A file with confirmed bytes at another endpoint stays there, as
    /// long as it would anyway; and an endpoint that could not be reached just now is passed over.
    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint?

    // MARK: Accounts

    /// No session of this account starts until a person acts.
    func queue(_ queue: TransferQueue, didBlockAccount account: String, because error: TransferError) async
    /// The account's sessions may start again.
    func queue(_ queue: TransferQueue, didUnblockAccount account: String) async
    /// The account's credentials were refused or can't be read. Asked once, however many sessions wait for the answer; and once more when the
    /// queue is started in the next process, if the account is still blocked then. If what ``CredentialsAnswer/retry`` leads to is refused as
    /// well, the question comes again, and each such answer is followed after a longer delay than the one before: 1 s, doubling up to 5 min.
    ///
    /// What comes after waits for the answer. To ask a person, answer ``CredentialsAnswer/later``, and call
    /// ``TransferQueue/unblockAccount(_:)`` when there are new credentials.
    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsAnswer
}

/// What a delegate answers to a queue that needs credentials.
public enum CredentialsAnswer: Hashable, Sendable {
    /// The account stays blocked until it is unblocked or saved anew. The answer of a delegate that does not implement the question.
    case later
    /// What the account's credentials refer to is good now: the queue unblocks the account and tries again.
    case retry
}
