import Foundation
import Locking
import Logging
import TransferCore

/// Requests single removals at servers, and decides when the queue abandons a removal.
extension DiscardOutbox {
    /// Requests a removal at a server.
    ///
    /// - Returns: False if the store did not accept the result. True also if the task was cancelled, so that there is no result.
    func discard(_ item: PendingDiscard) async -> Bool {
        guard let transport = transports[item.endpoint.transport] as? any PartialDiscarding else {
            // If the transport is not registered in this process, a later process may register the transport, so the removal is retried
            // until its deadline. If the transport is registered but can't remove content, the removal ends now.
            let isMissing = transports[item.endpoint.transport] == nil
            return await storeNextAttempt(of: item, at: isMissing && !hasExpired(item) ? clock.date() + delay(item) : nil)
        }
        let result = await Self.result {
            let message = "\(item.endpoint.location) took longer than \(Self.timeout) to remove content of a session."
            try await TimeLimit.run(for: Self.timeout, clock, message) { [credentials] in
                try await transport.discard(item.checkpoint, at: item.endpoint, credentials: credentials)
            }
        }
        return await storeResult(result, of: item)
    }

    static func result(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    /// Stores the result of a removal.
    ///
    /// - Returns: False if the store did not accept the result. True also if the task was cancelled, so that there is no result.
    func storeResult(_ result: Result<Void, any Error>, of item: PendingDiscard) async -> Bool {
        do {
            try result.get()
            return await storeNextAttempt(of: item, at: nil)
        } catch let error as TransferError where error.failureClass == .unsupported {
            // Logs no warning if the server reports that it does not support removals.
            if error.code != .unsupported {
                logger.warning("Content of a session stays at \(item.endpoint.location), because it can't be removed: \(error)")
            }
            return await storeNextAttempt(of: item, at: nil)
        } catch is CancellationError where Task.isCancelled {
            return true
        } catch {
            logger.info("Cannot remove content of a session at \(item.endpoint.location) yet: \(error)")
            let error = error as? TransferError
            let now = clock.moment
            let delay = delay(item, retryAfter: error?.retryAfter)
            let requestedPause = error?.retryAfter.map { min($0, RetryPolicy.longestRetryAfter) }
            // A part file has no host to pause. ``LocalParts`` refuses further removals in a folder until the earlier removal has returned.
            if !item.isPart, error?.code == .timedOut || requestedPause != nil {
                let length = requestedPause.map { max($0, Self.firstDelay) } ?? delay
                pauses.pause(item.endpoint, PausedHosts.Pause(end: now.uptime + length, wasRequested: requestedPause != nil))
            }
            return await storeNextAttempt(
                of: item, at: hasExpired(item) ? nil : now.date + delay, backOffUntil: requestedPause.map { now.date + $0 })
        }
    }

    private func delay(_ item: PendingDiscard, retryAfter: Duration? = nil) -> Duration {
        RetryPolicy(base: Self.firstDelay, maximumDelay: Self.longestDelay)
            .delay(afterFailures: item.attempts + 1, retryAfter: max(.seconds(1), retryAfter ?? .zero), fraction: randomFraction())
    }

    // MARK: Deadlines

    /// Returns whether the deadline of a removal has passed. An implausible deadline (``QueueStore/isPlausible(deadline:at:)``) never
    /// counts as passed, because the removal gets a new deadline (``correctDeadlines(of:)``).
    private func hasExpired(_ item: PendingDiscard) -> Bool {
        QueueStore.isPlausible(deadline: item.giveUpAt, at: clock.date()) && item.giveUpAt <= expiryDate
    }

    /// Stores a new deadline for each removal whose deadline is implausible. If the store refuses the change, the outbox still performs the
    /// removals.
    func correctDeadlines(of items: [PendingDiscard]) async {
        let now = clock.date()
        let keys = items.filter { !QueueStore.isPlausible(deadline: $0.giveUpAt, at: now) }.map(\.key)
        if !keys.isEmpty { try? await store.correctDeadlines(of: keys) }
    }

    /// The date up to which plausible deadlines have passed: the current date, or the date of the queue's opening plus the uptime since
    /// then, whichever is earlier. A clock that is set ahead by a few days while the queue is open therefore lets no removal expire early.
    ///
    /// After a larger change to the clock, the uptime counts from the new date, because all deadlines from before the change are implausible
    /// at the new date, and are corrected.
    var expiryDate: Date {
        let now = clock.moment
        return reference.withLock { reference in
            let expected = reference.date + (now.uptime - reference.uptime)
            if abs(now.date.timeIntervalSince(expected)) > QueueStore.largeClockChange { reference = now }
            return min(now.date, reference.date + (now.uptime - reference.uptime))
        }
    }
}
