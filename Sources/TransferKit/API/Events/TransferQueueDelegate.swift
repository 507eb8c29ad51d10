public import TransferCore

/// Receives the events of a queue, in order, and makes decisions for the queue. Set it with ``TransferQueue/setDelegate(_:)``.
///
/// The queue calls ``queue(_:didReceive:)`` and ``queue(_:needsCredentialsFor:because:)`` one at a time, each after the previous call has
/// returned. It can call ``queue(_:endpointFor:among:)`` at any time. A slow delegate never slows the queue: when 4,096 events wait for the
/// delegate, the queue drops further events and delivers one ``QueueEvent/Kind/gap(from:to:)`` in their place.
///
/// Implement the methods as isolated methods of an actor or a main-actor class, asynchronous or not. Their isolation determines where they
/// run. Mark async methods of a main-actor class `@MainActor`; otherwise they inherit `nonisolated` from this protocol.
public protocol TransferQueueDelegate: AnyObject, Sendable {
    /// Receives an event. If the event reports a stored change, the change is already durable.
    ///
    /// Switch over ``QueueEvent/kind`` with a `default` case, because later versions can add kinds. The order of the sessions may have changed again
    /// since the event; indices refer to the order at the time of the event. So apply changes of the order to a ``QueueList``, created from
    /// ``TransferQueue/order()``.
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async

    /// Returns the endpoint that a session prefers; nil for the account's order of endpoints.
    ///
    /// The queue calls this method for a running session with two or more available endpoints, once in each run for each set of available
    /// endpoints. The call can overlap with calls of other methods, and with calls for other sessions. The session keeps its slot while it
    /// waits for the result. If the session is interrupted, it stops waiting. Other sessions do not wait. A result that is not in
    /// `endpoints` is ignored, with a warning in the log.
    ///
    /// The result overrides only the account's order of endpoints. All other rules still apply. For example, a file with confirmed bytes stays
    /// at its endpoint for as long as it would without a delegate, and the queue skips an endpoint that was recently unreachable.
    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint?

    /// Decides how to continue after an account's credentials were rejected or can't be read.
    ///
    /// Called once each time the account is blocked for this reason, regardless of the number of waiting sessions. Called again if the account
    /// is still blocked when the next process starts the queue. If credentials are rejected after ``CredentialsDecision/retry``, and the method
    /// returns `retry` again, the queue waits before it unblocks the account. The delay doubles each time, from 1 s to 5 min. If the last
    /// unblocking was more than 10 min ago, the queue does not wait.
    ///
    /// Later events wait until this method returns. To ask the user, return ``CredentialsDecision/later`` immediately, and call
    /// ``TransferQueue/unblockAccount(_:)`` when new credentials exist.
    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsDecision
}

extension TransferQueueDelegate {
    /// Returns nil, so the account's order of endpoints applies.
    public func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint? { nil }
    /// Returns ``CredentialsDecision/later``.
    public func queue(
        _ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError
    ) async -> CredentialsDecision {
        .later
    }
}

/// A delegate's decision after a request for credentials.
public enum CredentialsDecision: Hashable, Sendable {
    /// The account stays blocked until it is unblocked or saved again. This is the default.
    case later
    /// The account has new credentials. The queue unblocks the account, so that its sessions can start again.
    case retry
}
