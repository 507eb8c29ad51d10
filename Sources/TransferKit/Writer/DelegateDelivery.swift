import Locking
package import Logging
import TransferCore

/// Calls a queue's delegate for each event, one at a time.
package final class DelegateDelivery: Sendable {
    private struct Recipient: Sendable {
        weak let delegate: (any TransferQueueDelegate)?
    }

    private let task = Locked<Task<Void, Never>?>(nil)
    private let recipient = Locked(Recipient(delegate: nil))
    private let retries = CredentialRetries()

    package init() {}

    /// The current delegate; nil if none is set, or if it was released.
    var delegate: (any TransferQueueDelegate)? { recipient.withLock { $0.delegate } }

    deinit { task.withLock { $0?.cancel() } }

    /// Replaces the delegate. The new delegate gets events after the last call to the previous delegate has returned.
    package func start(_ delegate: (any TransferQueueDelegate)?, of queue: TransferQueue, events: QueueEvents, logger: Logger) {
        recipient.withLock { $0 = Recipient(delegate: delegate) }
        task.withLock { task in
            let previous = task
            previous?.cancel()
            guard let delegate else { return task = nil }
            task = Task { [weak delegate, weak queue, retries] in
                await previous?.value
                var hasReceived = false
                for await event in events {
                    guard !Task.isCancelled, let queue else { return }
                    guard let delegate else {
                        guard !hasReceived else { return }
                        return logger.warning(
                            "The delegate was released before its first event. Keep a reference to it, because the queue holds it weakly.")
                    }
                    hasReceived = true
                    await delegate.queue(queue, didReceive: event)
                    await delegate.deliver(event, of: queue, retries)
                }
            }
        }
    }

    /// Returns when the last event was delivered.
    package func finish() async {
        await task.withLock { $0 }?.value
    }
}

extension TransferQueueDelegate {
    fileprivate func deliver(_ event: QueueEvent, of queue: TransferQueue, _ retries: CredentialRetries) async {
        switch event.kind {
        case .queueStarted: await queueDidStart(queue)
        case .queueStopped: await queueDidStop(queue)
        case .queueBecameIdle: await queueDidBecomeIdle(queue)
        case .limitsChanged: await queueDidChangeLimits(queue)
        case .storageFailed(let error): await self.queue(queue, storageDidFail: error)
        case .quarantined(let text): await self.queue(queue, didQuarantine: text)
        case .storeTrimmed(let text): await self.queue(queue, didTrimStore: text)
        case .gap(let from, let to): await self.queue(queue, didMissEventsFrom: from, to: to)
        case .willChangeQueue(let revision): await queueWillChange(queue, orderRevision: revision)
        case .didChangeQueue(let revision): await queueDidChange(queue, orderRevision: revision)
        case .added(let ids, let index): await self.queue(queue, didAdd: ids, at: index)
        case .removed(let ids, let indices): await self.queue(queue, didRemove: ids, at: indices)
        case .moved(let id, let from, let to): await self.queue(queue, didMove: id, from: from, to: to)
        case .willActivate(let id): await self.queue(queue, willActivate: id)
        case .didActivate(let id): await self.queue(queue, didActivate: id)
        case .willStartRunning(let id): await self.queue(queue, willStartRunning: id)
        case .didStartRunning(let id): await self.queue(queue, didStartRunning: id)
        case .willStopRunning(let id): await self.queue(queue, willStopRunning: id)
        case .didStopRunning(let id): await self.queue(queue, didStopRunning: id)
        case .willDeactivate(let id): await self.queue(queue, willDeactivate: id)
        case .didDeactivate(let id): await self.queue(queue, didDeactivate: id)
        case .changed(let ids, let state): await self.queue(queue, didChange: ids, to: state)
        case .updated(let id): await self.queue(queue, didUpdate: id)
        case .completed(let id): await self.queue(queue, didComplete: id)
        case .failed(let id, let error): await self.queue(queue, didFail: id, with: error)
        case .cancelled(let ids): await self.queue(queue, didCancel: ids)
        case .progress(let id, let statistics): await self.queue(queue, session: id, didProgress: statistics)
        case .itemCompleted(let id, let position, let receipt): await self.queue(queue, session: id, didCompleteItem: position, receipt)
        case .itemFailed(let id, let position, let error): await self.queue(queue, session: id, didFailItem: position, with: error)
        case .itemRestarted(let id, let position, let error): await self.queue(queue, session: id, didRestartItem: position, because: error)
        case .attemptFailed(let id, let error, let date): await self.queue(queue, session: id, didFailAttempt: error, retryAt: date)
        case .endpointChanged(let id, let from, let to): await self.queue(queue, session: id, didChangeEndpointFrom: from, to: to)
        case .accountBlocked(let account, let error): await self.queue(queue, didBlockAccount: account, because: error)
        case .accountUnblocked(let account): await self.queue(queue, didUnblockAccount: account)
        case .needsCredentials(let account, let error):
            guard await self.queue(queue, needsCredentialsFor: account, because: error) == .retry else { return }
            await retries.unblock(account, of: queue)
        }
    }
}
