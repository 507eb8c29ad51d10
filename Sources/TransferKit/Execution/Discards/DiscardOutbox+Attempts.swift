import Foundation
import Locking
import Logging
import TransferCore

/// Requests individual removals from servers, and decides when the queue abandons a removal.
extension DiscardOutbox {
    /// Requests a removal from a server.
    ///
    /// - Returns: Whether the result is stored; also true if the task was cancelled before there was a result.
    func discard(_ removal: PendingDiscard) async -> Bool {
        guard let transport = transports[removal.endpoint.transport] as? any PartialDiscarding else {
            // If the transport is not registered in this process, a later process may register the transport, so the removal is retried
            // until its deadline. If the transport is registered but can't remove content, the removal ends now.
            let isMissing = transports[removal.endpoint.transport] == nil
            return await storeNextAttempt(of: removal, at: isMissing && !hasExpired(removal) ? clock.date() + delay(removal) : nil)
        }
        let result = await Self.result {
            let message = "\(removal.endpoint.location) took longer than \(Self.timeout) to remove content of a session."
            try await TimeLimit.run(for: Self.timeout, clock, message) { [credentials] in
                try await transport.discard(removal.checkpoint, at: removal.endpoint, credentials: credentials)
            }
        }
        return await storeResult(result, of: removal)
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
    /// - Returns: Whether the result is stored; also true if the task was cancelled before there was a result.
    func storeResult(_ result: Result<Void, any Error>, of removal: PendingDiscard) async -> Bool {
        do {
            try result.get()
            return await storeNextAttempt(of: removal, at: nil)
        } catch let error as TransferError where error.failureClass == .unsupported {
            // Log no warning if the server reports that it does not support removals.
            if error.code != .unsupported {
                logger.warning("Content of a session stays at \(removal.endpoint.location), because it can't be removed: \(error)")
            }
            return await storeNextAttempt(of: removal, at: nil)
        } catch is CancellationError where Task.isCancelled {
            return true
        } catch {
            logger.info("Cannot remove content of a session at \(removal.endpoint.location) yet: \(error)")
            let error = error as? TransferError
            let now = clock.moment
            let delay = delay(removal, retryAfter: error?.retryAfter)
            let requestedPause = error?.retryAfter.map { min($0, RetryPolicy.longestRetryAfter) }
            // A part file has no host to pause. ``LocalPartFiles`` refuses further removals in a folder until the earlier removal has returned.
            if !removal.isPartFile, error?.code == .timedOut || requestedPause != nil {
                let length = requestedPause.map { max($0, Self.firstDelay) } ?? delay
                pauses.pause(removal.endpoint, PausedHosts.Pause(end: now.uptime + length, wasRequested: requestedPause != nil))
            }
            return await storeNextAttempt(
                of: removal, at: hasExpired(removal) ? nil : now.date + delay, backOffUntil: requestedPause.map { now.date + $0 })
        }
    }

    private func delay(_ removal: PendingDiscard, retryAfter: Duration? = nil) -> Duration {
        RetryPolicy(base: Self.firstDelay, maximumDelay: Self.longestDelay)
            .delay(afterFailures: removal.attempts + 1, retryAfter: max(.seconds(1), retryAfter ?? .zero), fraction: randomFraction())
    }

    // MARK: Deadlines

    /// Returns whether the deadline of a removal has passed. An implausible deadline (``QueueStore/isPlausible(deadline:at:)``) never
    /// counts as passed, because the removal gets a new deadline (``correctDeadlines(of:)``).
    private func hasExpired(_ removal: PendingDiscard) -> Bool {
        QueueStore.isPlausible(deadline: removal.giveUpAt, at: clock.date()) && removal.giveUpAt <= expiryDate
    }

    /// Stores a new deadline for each removal whose deadline is implausible. If the database refuses the change, the outbox still performs the
    /// removals.
    func correctDeadlines(of removals: [PendingDiscard]) async {
        let now = clock.date()
        let keys = removals.filter { !QueueStore.isPlausible(deadline: $0.giveUpAt, at: now) }.map(\.key)
        if !keys.isEmpty { try? await store.correctDeadlines(of: keys) }
    }

    /// The date up to which plausible deadlines have passed: the current date, or the date of the queue's opening plus the uptime since then,
    /// whichever is earlier. Therefore, no removal expires early if the clock is set ahead by a few days while the queue is open.
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
