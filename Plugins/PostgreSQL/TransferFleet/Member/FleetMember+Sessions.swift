import Logging
import TransferCore
package import TransferKit

/// The life of a session on a member: taken, run, and reported or given back.
extension FleetMember {
    /// The delay before a session that a member could not add to its queue starts elsewhere.
    private static let adoptionRetryDelay = Duration.seconds(30)
    /// The delay before a session starts again whose earlier run has not ended.
    private static let rerunDelay = Duration.seconds(5)

    /// Adds a taken session to the member's queue, which starts it.
    func adopt(_ lease: FleetLease, takenAt began: ContinuousClock.Instant) async {
        let reference = lease.reference
        guard held[lease.id] == nil else {
            // The queue is still ending an earlier run of the session, whose lease was lost.
            _ = try? await store.locked { try $0.giveBack(reference, statistics: nil, delay: Self.rerunDelay, isInterrupted: true) }
            return
        }
        held[lease.id] = Held(
            lease: reference, account: lease.account.name, deadline: began + FleetLease.duration - FleetLease.safetyMargin)
        await recorder.begin(reference)
        do {
            if accounts[lease.account.name] != lease.account {
                try await queue.save(lease.account)
                accounts[lease.account.name] = lease.account
            }
            try await queue.adopt(lease.draft)
        } catch {
            logger.error("Cannot run a session. \(error)", metadata: ["session": "\(lease.id)"])
            stop(lease.id, delay: Self.adoptionRetryDelay)
        }
    }

    /// Does what the fleet asks for a session.
    func follow(_ request: LeaseRequest, _ id: SessionID) async {
        guard let session = held[id], session.phase == .running, outcomes[id] == nil else { return }
        switch request {
        case .run where session.isPaused:
            held[id]?.isPaused = false
            _ = try? await queue.apply(.resume, to: .id(id))
        case .pause where !session.isPaused:
            held[id]?.isPaused = true
            _ = try? await queue.apply(.pause, to: .id(id))
        case .giveBack: stop(id, delay: nil, isInterrupted: false)
        case .run, .pause: break
        }
    }

    /// Reports the end of a session to the fleet, then removes it from the queue.
    func report(_ outcome: Outcome, of id: SessionID) async throws {
        guard let session = held[id], !session.isLost, session.phase == .running else {
            outcomes[id] = nil
            return
        }
        let statistics = try await queue.status(of: id).statistics
        var error: TransferError?
        if case .failed(let reason) = outcome {
            error = reason
            try await recordFailures(of: id, session.lease)
        }
        let (lease, end) = (session.lease, error)
        let isValid = try await store.locked { try $0.finish(lease, error: end, statistics: statistics) }
        outcomes[id] = nil
        if !isValid { logger.error("The lease of a session ended before its end was recorded.", metadata: ["session": "\(id)"]) }
        held[id]?.isLost = true
        held[id]?.phase = .stopping
        await recorder.end(id)
        withdraw(id) {}
    }

    /// Records the failed files, so that a retry knows which files have failed.
    private func recordFailures(of id: SessionID, _ lease: LeaseReference) async throws {
        var position: Int64 = 0
        while true {
            let items = try await queue.items(of: id, from: position, limit: 1_000)
            guard let last = items.last else { return }
            let failures = items.compactMap { item in
                item.state == .failed ? item.error.map { FileProgress(position: item.position, event: .failed($0)) } : nil
            }
            if !failures.isEmpty { _ = try await store.record(failures.map { (lease, $0) }, of: description.name) }
            position = last.position + 1
        }
    }

    /// Interrupts a session, and gives it back once its run has ended.
    ///
    /// - Parameters:
    ///   - delay: The time before the session may start again; nil for no delay.
    ///   - isInterrupted: Whether the member stops the session for its own reason.
    func stop(_ id: SessionID, delay: Duration?, isInterrupted: Bool = true) {
        guard let session = held[id], session.phase == .running else { return }
        held[id]?.phase = .stopping
        withdraw(id) { [store] in
            _ = try? await store.locked { try $0.giveBack(session.lease, statistics: nil, delay: delay, isInterrupted: isInterrupted) }
        }
    }

    /// Stops a session whose lease has ended or ends soon. Another member may take it, so nothing is written to the fleet, and nothing remote is
    /// discarded.
    func lose(_ id: SessionID) async {
        guard let session = held[id], !session.isLost else { return }
        held[id]?.isLost = true
        outcomes[id] = nil
        await recorder.end(id)
        guard session.phase == .running else { return }
        held[id]?.phase = .stopping
        withdraw(id) {}
    }

    func loseAll() async {
        for id in held.keys { await lose(id) }
        await waitForWithdrawals()
    }

    /// Interrupts all sessions, and gives them back.
    func giveAllBack() async {
        for id in held.keys { stop(id, delay: nil) }
        await waitForWithdrawals()
        do {
            try await store.leave(description)
        } catch {
            logger.warning("Cannot leave the fleet, so its sessions continue after 15 s. \(error)")
        }
    }

    private func waitForWithdrawals() async {
        while let task = withdrawals.values.first { await task.value }
    }

    /// Removes a session from the queue once its run has ended, and then calls the body, unless the lease was lost.
    private func withdraw(_ id: SessionID, then giveBack: @escaping @Sendable () async -> Void) {
        withdrawals[id] = Task { [queue, logger] in
            // Interrupts the run first, so that no byte is sent after the session was given back.
            do {
                try await queue.withdraw(id)
            } catch {
                logger.error("Cannot remove a session from this member's queue. \(error)", metadata: ["session": "\(id)"])
            }
            if held[id]?.isLost == false { await giveBack() }
            await recorder.end(id)
            held[id] = nil
            withdrawals[id] = nil
            wake()
        }
    }

    /// Reports that this member can't use an account, and gives its sessions back, so that other members run them.
    func refuse(_ account: String, _ error: TransferError) async {
        do {
            try await store.refuse(account, error: error, by: description.name)
        } catch {
            logger.warning("\(error)")
        }
        // When the fleet offers the account again, saving it unblocks it in the queue.
        accounts[account] = nil
        for (id, session) in held where session.account == account { stop(id, delay: nil) }
    }
}

extension FleetMember {
    /// The state of a session in the member's own queue; nil if the queue does not have it.
    package func localState(of id: SessionID) async throws -> SessionState? {
        guard held[id] != nil else { return nil }
        do {
            return try await queue.status(of: id).state
        } catch let error as QueueError where error.code == .noSuchSession {
            // The member has just removed the session.
            return nil
        }
    }
}
