public import Foundation
public import TransferCore

/// Default implementations of the optional methods. They do nothing.
extension TransferQueueDelegate {
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {}
    /// Does nothing.
    public func queueDidStart(_ queue: TransferQueue) async {}
    /// Does nothing.
    public func queueDidStop(_ queue: TransferQueue) async {}
    /// Does nothing.
    public func queueDidBecomeIdle(_ queue: TransferQueue) async {}
    /// Does nothing.
    public func queueDidChangeLimits(_ queue: TransferQueue) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, storageDidFail error: QueueError) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didQuarantine description: String) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didTrimStore description: String) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didMissEventsFrom first: UInt64, to last: UInt64) async {}
    /// Does nothing.
    public func queueWillChange(_ queue: TransferQueue, orderRevision: UInt64) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didAdd sessions: [SessionID], at index: Int) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didRemove sessions: [SessionID], at indices: [Int]) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didMove session: SessionID, from: Int, to: Int) async {}
    /// Does nothing.
    public func queueDidChange(_ queue: TransferQueue, orderRevision: UInt64) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, willActivate session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didActivate session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, willStartRunning session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didStartRunning session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, willStopRunning session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didStopRunning session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, willDeactivate session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didDeactivate session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didChange sessions: [SessionID], to state: SessionState) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didUpdate session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didComplete session: SessionID) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didFail session: SessionID, with error: TransferError) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didCancel sessions: [SessionID]) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didProgress statistics: SessionStatistics) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didCompleteItem position: Int64, _ receipt: TransferReceipt) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didFailItem position: Int64, with error: TransferError) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didRestartItem position: Int64, because error: TransferError) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didFailAttempt error: TransferError, retryAt: Date) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, session: SessionID, didChangeEndpointFrom previous: String?, to endpoint: String) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didBlockAccount account: String, because error: TransferError) async {}
    /// Does nothing.
    public func queue(_ queue: TransferQueue, didUnblockAccount account: String) async {}
    /// Leaves the choice to the queue.
    public func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint? { nil }
    /// Returns `.later`: the account stays blocked.
    public func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsAnswer
    {
        .later
    }
}
