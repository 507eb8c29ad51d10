import Foundation
import TransferCore
import TransferKit

/// Converts the calls of a delegate back into events. Its methods belong to an actor, and most of them are synchronous.
actor RecordingDelegate: TransferQueueDelegate {
    private(set) var kinds: [QueueEvent.Kind] = []
    private let answer: CredentialsAnswer
    private var isInside = false
    private(set) var overlaps = 0

    init(answer: CredentialsAnswer = .later) {
        self.answer = answer
    }

    private func record(_ kind: QueueEvent.Kind) {
        kinds.append(kind)
    }

    /// Lets other tasks run in between.
    private func recordSlowly(_ kind: QueueEvent.Kind) async {
        if isInside { overlaps += 1 }
        isInside = true
        await Task.yield()
        record(kind)
        isInside = false
    }

    func queueDidStart(_ queue: TransferQueue) {
        record(.queueStarted)
    }

    func queueDidStop(_ queue: TransferQueue) {
        record(.queueStopped)
    }

    func queueDidBecomeIdle(_ queue: TransferQueue) {
        record(.queueBecameIdle)
    }

    func queueDidChangeLimits(_ queue: TransferQueue) {
        record(.limitsChanged)
    }

    func queue(_ queue: TransferQueue, storageDidFail error: QueueError) {
        record(.storageFailed(error))
    }

    func queue(_ queue: TransferQueue, didQuarantine description: String) {
        record(.quarantined(description))
    }

    func queue(_ queue: TransferQueue, didTrimStore description: String) {
        record(.storeTrimmed(description))
    }

    func queue(_ queue: TransferQueue, didMissEventsFrom first: UInt64, to last: UInt64) {
        record(.gap(from: first, to: last))
    }

    func queueWillChange(_ queue: TransferQueue, orderRevision: UInt64) {
        record(.willChangeQueue(orderRevision: orderRevision))
    }

    func queue(_ queue: TransferQueue, didAdd sessions: [SessionID], at index: Int) async {
        await recordSlowly(.added(sessions, index: index))
    }

    func queue(_ queue: TransferQueue, didRemove sessions: [SessionID], at indices: [Int]) {
        record(.removed(sessions, indices: indices))
    }

    func queue(_ queue: TransferQueue, didMove session: SessionID, from: Int, to: Int) {
        record(.moved(session, from: from, to: to))
    }

    func queueDidChange(_ queue: TransferQueue, orderRevision: UInt64) {
        record(.didChangeQueue(orderRevision: orderRevision))
    }

    func queue(_ queue: TransferQueue, willActivate session: SessionID) {
        record(.willActivate(session))
    }

    func queue(_ queue: TransferQueue, didActivate session: SessionID) async {
        await recordSlowly(.didActivate(session))
    }

    func queue(_ queue: TransferQueue, willStartRunning session: SessionID) {
        record(.willStartRunning(session))
    }

    func queue(_ queue: TransferQueue, didStartRunning session: SessionID) {
        record(.didStartRunning(session))
    }

    func queue(_ queue: TransferQueue, willStopRunning session: SessionID) {
        record(.willStopRunning(session))
    }

    func queue(_ queue: TransferQueue, didStopRunning session: SessionID) {
        record(.didStopRunning(session))
    }

    func queue(_ queue: TransferQueue, willDeactivate session: SessionID) {
        record(.willDeactivate(session))
    }

    func queue(_ queue: TransferQueue, didDeactivate session: SessionID) {
        record(.didDeactivate(session))
    }

    func queue(_ queue: TransferQueue, didChange sessions: [SessionID], to state: SessionState) {
        record(.changed(sessions, state))
    }

    func queue(_ queue: TransferQueue, didUpdate session: SessionID) {
        record(.updated(session))
    }

    func queue(_ queue: TransferQueue, didComplete session: SessionID) {
        record(.completed(session))
    }

    func queue(_ queue: TransferQueue, didFail session: SessionID, with error: TransferError) {
        record(.failed(session, error))
    }

    func queue(_ queue: TransferQueue, didCancel sessions: [SessionID]) {
        record(.cancelled(sessions))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didProgress statistics: SessionStatistics) {
        record(.progress(session, statistics))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didCompleteItem position: Int64, _ receipt: TransferReceipt) {
        record(.itemCompleted(session, position: position, receipt))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didFailItem position: Int64, with error: TransferError) {
        record(.itemFailed(session, position: position, error))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didRestartItem position: Int64, because error: TransferError) {
        record(.itemRestarted(session, position: position, error))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didFailAttempt error: TransferError, retryAt: Date) {
        record(.attemptFailed(session, error, retryAt: retryAt))
    }

    func queue(_ queue: TransferQueue, session: SessionID, didChangeEndpointFrom previous: String?, to endpoint: String) {
        record(.endpointChanged(session, from: previous, to: endpoint))
    }

    func queue(_ queue: TransferQueue, didBlockAccount account: String, because error: TransferError) {
        record(.accountBlocked(account: account, error))
    }

    func queue(_ queue: TransferQueue, didUnblockAccount account: String) {
        record(.accountUnblocked(account: account))
    }

    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) -> CredentialsAnswer {
        record(.needsCredentials(account: account, error))
        return answer
    }
}
