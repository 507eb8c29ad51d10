import Logging
import TransferKit

/// Renews a member's leases, and stops a session in time if its lease can't be renewed. Never waits for the fleet's lock, unlike the code
/// that takes sessions and reports their ends.
extension FleetMember {
    /// Sends a heartbeat, which renews the leases, for each element of `heartbeatRequests`, until the task is cancelled or the fleet has
    /// removed the member.
    func sendHeartbeats() async {
        for await _ in heartbeatRequests {
            do {
                try await renew()
            } catch let error as QueueError where error.code == .evicted {
                return end(with: error)
            } catch {
                // The sessions continue until their deadlines. The next heartbeat retries.
                logger.warning("\(error)")
            }
        }
    }

    private func renew() async throws {
        let began = ContinuousClock.now
        var leases: [(lease: LeaseReference, statistics: SessionStatistics?)] = []
        for (id, session) in taken where !session.isLost {
            var status: SessionStatus?
            if session.isAdopted {
                do {
                    status = try await queue.statusForMember(of: id)
                } catch let error as QueueError where error.code == .noSuchSession && session.phase == .running {
                    // The member may have stopped the session during the call.
                    guard let current = taken[id], current.lease == session.lease, !current.isLost, current.phase == .running else {
                        continue
                    }
                    // The queue has lost the session, for example to the quarantine. Without a renewal, another member takes over the
                    // session.
                    logger.error("The queue has lost a session. \(error)", metadata: ["session": "\(id)"])
                    continue
                } catch {
                    // The lease does not depend on the statistics.
                }
            }
            leases.append((session.lease, status?.statistics))
            // The event stream may have dropped the event that reports the session's end.
            guard let status, taken[id]?.lease == session.lease, taken[id]?.phase == .running, outcomes[id] == nil else { continue }
            if status.state == .completed { outcomes[id] = .completed }
            if status.state == .failed, let error = status.error { outcomes[id] = .failed(error) }
            if outcomes[id] != nil { wake() }
        }
        let response = try await heartbeats.renew(leases, of: description)
        let requests = response.requests
        for (lease, _) in leases where taken[lease.id]?.lease == lease {
            if requests[lease.id] != nil {
                taken[lease.id]?.deadline = began + FleetLease.duration - FleetLease.safetyMargin
            } else if outcomes[lease.id] == nil {
                await lose(lease.id)
            }
            // If the session has ended, `report(_:of:)` checks the lease.
        }
        // If no lease was renewed, the response contains no rate shares.
        if !requests.isEmpty { await apply(response.rates) }
        retryEndpoints(response.retries)
        for (id, request) in requests { follow(request, id, runRequests: response.runRequests[id] ?? 0) }
    }

    /// Stops sessions whose leases were not renewed in time.
    func watchDeadlines() async {
        while (try? await Task.sleep(for: .milliseconds(500))) != nil {
            for (id, session) in taken where !session.isLost && session.deadline <= ContinuousClock.now {
                logger.error("Stopped a session, because its lease could not be renewed in time.", metadata: ["session": "\(id)"])
                await lose(id)
            }
        }
    }

    /// Receives the fleet's notifications. An empty payload makes the member look for sessions, and the member's name makes it send a
    /// heartbeat.
    func watchNotifications() async {
        while !Task.isCancelled {
            do {
                let notified = try await listener.awaitNotifications(timeout: .seconds(1))
                if notified.contains("") { wakeUp.yield() }
                if notified.contains(description.name) { heartbeatRequest.yield() }
            } catch {
                // Without notifications, the member still notices changes at its heartbeats.
                try? await Task.sleep(for: Self.heartbeatInterval)
            }
        }
    }
}
