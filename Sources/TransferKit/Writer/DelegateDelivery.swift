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

    /// Replaces the delegate. The new delegate gets no event before the last call to the previous delegate has returned.
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
                    guard case .needsCredentials(let account, let error) = event.kind,
                        await delegate.queue(queue, needsCredentialsFor: account, because: error) == .retry
                    else { continue }
                    await retries.unblock(account, of: queue)
                }
            }
        }
    }

    /// Waits until the last event has been delivered.
    package func finish() async {
        await task.withLock { $0 }?.value
    }
}
