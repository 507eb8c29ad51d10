import Logging
import TransferCore
package import TransferKit

/// The life of a session on a member: the member takes the session, runs it in its own queue, and then reports its end or gives it back to
/// the fleet.
extension FleetMember {
    /// The delay before a session may start again, if the member could not add the session to its queue.
    private static let adoptionRetryDelay = Duration.seconds(30)
    private static let removalRetryDelay = Duration.seconds(1)
    /// The delay before a session may start again, if its earlier run has not ended.
    private static let rerunDelay = Duration.seconds(5)
    /// The maximum number of failed files that the member reports in one transaction.
    private static let maximumReportedFailures = 1_000

    /// Adds a taken session to the sessions whose leases the member renews.
    ///
    /// - Returns: False if the queue still has the session under an earlier lease.
    func register(_ lease: FleetLease, takenAt began: ContinuousClock.Instant) -> Bool {
        guard taken[lease.id] == nil else { return false }
        taken[lease.id] = TakenSession(
            lease: lease.reference, account: lease.account.name, deadline: began + FleetLease.duration - FleetLease.safetyMargin,
            runRequests: lease.mustRun ? nil : 0)
        // The queue has not used the endpoints of a new account yet, so there is nothing to try again.
        if retries[lease.account.name] == nil { retries[lease.account.name] = lease.retries }
        return true
    }

    /// Gives back a session for which ``register(_:takenAt:)`` returned false.
    func returnEarly(_ lease: FleetLease) async {
        let reference = lease.reference
        _ = try? await store.locked { try $0.giveBack(reference, statistics: nil, delay: Self.rerunDelay, isInterrupted: true) }
    }

    /// Adds a taken session to the member's queue, which starts it.
    func adopt(_ lease: FleetLease) async {
        // While other sessions were added, the lease may have been lost, or the fleet may have requested the session back.
        guard taken[lease.id]?.lease == lease.reference, taken[lease.id]?.phase == .running else { return }
        let adoption = Task {
            await recorder.begin(lease.reference)
            // Without this check, the queue would keep the session, and wait for the missing transport.
            guard lease.account.endpoints.contains(where: { transports.contains($0.transport) }) else {
                let names = Set(lease.account.endpoints.map(\.transport.rawValue)).sorted().joined(separator: ", ")
                throw QueueError(
                    .invalidAccount,
                    "The member \"\(description.name)\" has no transport for the account \"\(lease.account.name)\" (\(names)).")
            }
            let account = divided(lease.account)
            if accounts[account.name] != account {
                try await queue.save(account)
                accounts[account.name] = account
            }
            try await queue.adopt(lease.draft)
        }
        taken[lease.id]?.adoption = adoption
        do {
            try await adoption.value
            if taken[lease.id]?.lease == lease.reference { taken[lease.id]?.isAdopted = true }
            // The fleet may have sent a request before the queue had the session.
            heartbeatRequest.yield()
        } catch {
            guard taken[lease.id]?.lease == lease.reference else { return }
            logger.error("Cannot run a session. \(error)", metadata: ["session": "\(lease.id)"])
            await giveUp(lease, error)
        }
    }

    /// Gives back or ends a session that the member's queue could not add.
    private func giveUp(_ lease: FleetLease, _ error: any Error) async {
        let code = (error as? QueueError)?.code
        switch code {
        case .invalidAccount:
            // Other members may be able to use the account.
            await refuse(lease.account.name, TransferError(.unsupported, .unsupported, "\(error)"))
        case .invalidRequest:
            let (name, reason) = (description.name, TransferError(.permanent, .rejected, "\(error)"))
            stop(lease.id) { transaction, lease in
                if try transaction.passOn(lease, from: name, error: reason) { return true }
                return try transaction.finish(lease, error: reason, statistics: nil)
            }
        default:
            // Because `isInterrupted` is false, the sessions that this session displaced no longer wait for it.
            let reason = TransferError(.transient, .internalFailure, "A member can't run the session. \(error)")
            stop(lease.id) {
                try $0.giveBack($1, statistics: nil, delay: Self.adoptionRetryDelay, isInterrupted: false, error: reason)
            }
        }
    }

    /// Reports the end of a session to the fleet, then removes the session from the queue.
    func report(_ outcome: Outcome, of id: SessionID) async throws {
        guard let session = taken[id], !session.isLost, session.phase == .running else {
            outcomes[id] = nil
            return
        }
        let status = try await queue.statusForMember(of: id)
        // The event that reported the outcome can belong to an earlier lease of the session.
        guard [.completed, .failed].contains(status.state) else {
            outcomes[id] = nil
            return
        }
        // The queue may have abandoned the session's run, which may still send data. The member keeps the session until the run has ended.
        guard await !queue.hasUnendedRun(of: id) else { return }
        let statistics = status.statistics
        let lease = session.lease
        let isValid: Bool
        if case .failed(let error) = outcome {
            let failures = try await failures(of: id)
            let reason = failures.lazy.map(\.error).first(where: \.concernsOnlyOneMember)
            let name = description.name
            if let reason, try await store.locked({ try $0.passOn(lease, from: name, error: reason, statistics: statistics) }) {
                logger.warning("Left a session to other members. \(reason)", metadata: ["session": "\(id)"])
                isValid = true
            } else {
                // A retry must know which files have failed.
                for start in stride(from: 0, to: failures.count, by: Self.maximumReportedFailures) {
                    let events = failures[start..<min(start + Self.maximumReportedFailures, failures.count)].map {
                        (lease, FileProgress(position: $0.position, event: .failed($0.error)))
                    }
                    _ = try await store.record(events, of: name)
                }
                isValid = try await store.locked { try $0.finish(lease, error: error, statistics: statistics) }
            }
        } else {
            isValid = try await store.locked { try $0.finish(lease, error: nil, statistics: statistics) }
        }
        // The deadline of the lease may have passed during the transaction.
        guard taken[id]?.lease == lease, taken[id]?.phase == .running else { return }
        outcomes[id] = nil
        if !isValid { logger.error("The lease of a session ended before its end was recorded.", metadata: ["session": "\(id)"]) }
        taken[id]?.isLost = true
        taken[id]?.phase = .stopping
        await recorder.end(id)
        removeAfterRun(id) {}
    }

    private func failures(of id: SessionID) async throws -> [(position: Int64, error: TransferError)] {
        var position: Int64 = 0
        var failures: [(position: Int64, error: TransferError)] = []
        while true {
            let items = try await queue.items(of: id, from: position, limit: 1_000)
            guard let last = items.last else { return failures }
            for item in items where item.state == .failed {
                if let error = item.error { failures.append((item.position, error)) }
            }
            position = last.position + 1
        }
    }

    /// Interrupts a session, and gives it back once its run has ended.
    ///
    /// - Parameter isInterrupted: Whether the member stops the session without a request from the fleet.
    func stop(_ id: SessionID, isInterrupted: Bool = true) {
        stop(id) { try $0.giveBack($1, statistics: nil, isInterrupted: isInterrupted) }
    }

    /// Interrupts a session, and ends its lease once its run has ended.
    private func stop(_ id: SessionID, endingLease end: @escaping @Sendable (FleetTransaction, LeaseReference) throws -> Bool) {
        guard let session = taken[id], session.phase == .running else { return }
        taken[id]?.phase = .stopping
        removeAfterRun(id) { [store] in
            _ = try? await store.locked { try end($0, session.lease) }
        }
    }

    /// Stops a session whose lease has ended or ends soon. Another member may take the session, so this member writes nothing more about it to the
    /// fleet, and removes nothing from servers.
    func lose(_ id: SessionID) async {
        guard let session = taken[id], !session.isLost else { return }
        taken[id]?.isLost = true
        outcomes[id] = nil
        if session.phase == .running {
            taken[id]?.phase = .stopping
            removeAfterRun(id) {}
        }
        await recorder.end(id)
    }

    /// Stops all sessions like ``lose(_:)``, and waits until the queue has removed them.
    func loseAll() async {
        isLeaving = true
        for id in taken.keys { await lose(id) }
        await waitForRemovals()
    }

    /// Interrupts all sessions, gives them back, and leaves the fleet.
    func giveAllBack() async {
        isLeaving = true
        for id in taken.keys { stop(id) }
        await waitForRemovals()
        do {
            try await store.leave(description)
        } catch {
            logger.warning("Cannot leave the fleet, so other members can take this member's sessions only after 15 s. \(error)")
        }
    }

    private func waitForRemovals() async {
        while let task = removals.values.first { await task.value }
    }

    /// Removes a session from the member's queue once its run has ended, and then calls `giveBack`, unless the lease was lost. Until then,
    /// the member keeps the session, because its run may still send data.
    private func removeAfterRun(_ id: SessionID, then giveBack: @escaping @Sendable () async -> Void) {
        let adoption = taken[id]?.adoption
        removals[id] = Task {
            // Revoke the session immediately, even if the queue is still adding it.
            await queue.revoke(id)
            _ = await adoption?.result
            guard await removeFromQueue(id) else {
                removals[id] = nil
                return
            }
            if taken[id]?.isLost == false { await giveBack() }
            await recorder.end(id)
            taken[id] = nil
            removals[id] = nil
            sessionsLeft.send()
            wake()
        }
    }

    /// Removes a session from the member's queue. Retries until the removal succeeds.
    ///
    /// - Returns: False if the member leaves the fleet first. Another member then continues the session after its lease ends.
    private func removeFromQueue(_ id: SessionID) async -> Bool {
        var message = ""
        while true {
            do {
                try await queue.withdraw(id)
                return true
            } catch {
                if "\(error)" != message {
                    message = "\(error)"
                    logger.error(
                        "Cannot remove a session from this member's queue, so the member keeps it. \(message)",
                        metadata: ["session": "\(id)"])
                }
            }
            if isLeaving { return false }
            try? await Task.sleep(for: Self.removalRetryDelay)
        }
    }

    /// Reports that this member can't use an account, and gives the account's sessions back, so that other members run them.
    func refuse(_ account: String, _ error: TransferError) async {
        do {
            try await store.refuse(account, error: error, by: description.name)
        } catch {
            logger.warning("\(error)")
        }
        // When the fleet offers the account again, the member saves the account in the queue again, which unblocks the account.
        accounts[account] = nil
        for (id, session) in taken where session.account == account { stop(id) }
    }
}

extension FleetMember {
    /// The state of a session in the member's own queue; nil if the queue does not have the session.
    package func localState(of id: SessionID) async throws -> SessionState? {
        guard taken[id] != nil else { return nil }
        do {
            return try await queue.statusForMember(of: id).state
        } catch let error as QueueError where error.code == .noSuchSession {
            // The member has just removed the session.
            return nil
        }
    }

    /// Waits until a session has left the member's own queue.
    package func waitUntilLeft(_ id: SessionID) async throws {
        while true {
            let version = sessionsLeft.version
            guard taken[id] != nil else { return }
            try await sessionsLeft.wait(after: version)
        }
    }
}

extension TransferError {
    /// Whether another member may succeed: a local file or folder, or a transport's feature, is missing on this member.
    fileprivate var concernsOnlyOneMember: Bool {
        [.noSuchFile, .notReadable, .notWritable, .unsupported].contains(code) && failureClass != .transient
    }
}
