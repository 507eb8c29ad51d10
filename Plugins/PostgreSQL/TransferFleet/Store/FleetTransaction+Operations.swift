package import TransferKit

/// A session's columns that decide which operations are valid.
private struct OperationTarget {
    var id: SessionID
    var state: SessionState
    /// The member that has taken the session and not yet given it back; nil if no member has the session.
    var owner: String?
    var isOwned: Bool { owner != nil }
}

extension FleetTransaction {
    /// Applies an operation to one session.
    ///
    /// - Returns: For a pause, the new state; otherwise nil.
    /// - Throws: ``QueueError``.
    package func apply(_ operation: SessionOperation, to reference: SessionReference) throws -> SessionState? {
        let id = try resolve(reference)
        guard let row = try link.query("SELECT state, owner FROM session WHERE id = $1 FOR UPDATE", ["\(id)"]).first,
            let state = SessionState(rawValue: try row.text(0))
        else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        let target = OperationTarget(id: id, state: state, owner: try row.optional(1))
        switch operation {
        case .run(let again): try run(target, again: again)
        case .runNext:
            try require(target, operation, [.waiting])
            try link.query(
                "UPDATE session SET lane = 1, mark = $2 WHERE id = $1 AND lane > 0", ["\(id)", try nextMark()])
            notify()
        case .pause:
            try require(target, operation, [.running, .waiting])
            let paused: SessionState = state == .running ? .paused : .held
            try set(target, paused)
            return paused
        case .resume:
            try require(target, operation, [.paused, .held])
            try set(target, state == .paused ? .running : .waiting)
        case .hold:
            try require(target, operation, [.waiting, .running, .paused])
            try set(target, .held)
        case .release:
            try require(target, operation, [.held])
            try set(target, .waiting)
        case .yield:
            try require(target, operation, [.running, .paused, .waiting])
            try set(target, .waiting)
            if !target.isOwned { try restoreDisplaced(by: id) }
            try link.query(
                "UPDATE session SET lane = 4, not_before = clock_timestamp() + interval '5 s' WHERE id = $1", ["\(id)"])
        case .cancel(discarding: false):
            try require(target, operation, [.waiting, .running, .paused, .held, .failed])
            try set(target, .cancelled)
            // The owner may still be sending; see `handleLeaseEnd`.
            if !target.isOwned { try satisfyDependents(of: id, isCompleted: false) }
        case .cancel(discarding: true):
            throw QueueError.unsupportedByFleet(
                "Cancelling with the removal of unfinished uploads", "Cancel without --discard. Servers can remove unfinished uploads.")
        case .retry:
            try require(target, operation, [.failed, .cancelled])
            try restart(id)
            try set(target, .waiting)
        case .move(let destination): try move(id, to: destination)
        case .remove(let isForced): try remove(target, isForced: isForced)
        case .enqueue: throw QueueError.draftInFleet
        case .update(let changes): try update(id, state, isOwned: target.isOwned, changes)
        }
        return nil
    }

    private func require(_ target: OperationTarget, _ operation: SessionOperation, _ states: [SessionState]) throws {
        guard states.contains(target.state) else {
            throw QueueError(
                .invalidTransition, "The session \(target.id) is \(target.state.rawValue), so it can't be \(operation.participle).")
        }
    }

    /// Changes the state of a session, and notifies the member that has the session, if any.
    private func set(_ target: OperationTarget, _ state: SessionState) throws {
        try link.query(
            """
            UPDATE session SET state = $2, displaced_by = NULL, ended_at = CASE WHEN $2 = 'cancelled' THEN \(Self.endTime) END
            WHERE id = $1
            """, ["\(target.id)", state.rawValue])
        notify(target.owner.map { [$0] } ?? [])
        // A paused session keeps its slot. A session with an owner frees its slot later; see `handleLeaseEnd`.
        if !target.isOwned, state != .paused, state != .waiting { try restoreDisplaced(by: target.id) }
        record(state == .cancelled ? .cancelled([target.id]) : .changed([target.id], state))
    }

    private func run(_ target: OperationTarget, again: Bool) throws {
        switch target.state {
        case .running: return try requestRun(target)
        case .paused:
            try requestRun(target)
            return try set(target, .running)
        case .completed:
            guard again else {
                throw QueueError(.alreadyCompleted, "The session \(target.id) is completed. To transfer it again, run it with `again`.")
            }
            // A second transfer needs a new generation of each file, so that its uploads don't reuse the names of the first transfer.
            throw QueueError.unsupportedByFleet("Transferring a completed session again", "Add a new session.")
        case .failed, .cancelled: try restart(target.id)
        case .waiting, .held: try forgetRefusals(of: target.id)
        case .draft: throw QueueError.draftInFleet
        }
        // The order, a hold, a start time, a dependency and a displacement no longer matter.
        try set(target, .waiting)
        try link.query(
            """
            UPDATE session SET lane = 0, mark = $2, after_id = NULL, not_before = NULL, run_requests = run_requests + 1 WHERE id = $1
            """, ["\(target.id)", try nextMark()])
        try displace(for: target.id)
    }

    /// Makes the member that has a session run the session now: the member's queue ends the session's delays, and probes unavailable endpoints.
    ///
    /// The session's row stores the number of requests. The member therefore also performs a request whose notification was lost. If the member
    /// dies, the next member performs the request.
    private func requestRun(_ target: OperationTarget) throws {
        try link.query("UPDATE session SET run_requests = run_requests + 1 WHERE id = $1", ["\(target.id)"])
        notify(target.owner.map { [$0] } ?? [])
    }

    /// Deletes the failures of a session and its files. The member that takes the session next probes unavailable endpoints.
    private func restart(_ id: SessionID) throws {
        try forgetRefusals(of: id)
        try link.query(
            "UPDATE session SET error = NULL, ended_at = NULL, attempts = 0, run_requests = run_requests + 1 WHERE id = $1", ["\(id)"])
        // A file with an unknown outcome must first fail visibly. So the row that marks this outcome (`record`) stays unless the file has
        // failed. The messages of errors can contain characters that the type json rejects, so compare the text of the event.
        try link.query(
            """
            WITH failed AS (SELECT position FROM progress WHERE session = $1 AND part = 'end' AND starts_with(event, '{"failed":'))
            DELETE FROM progress WHERE session = $1 AND part IN ('end', 'record') AND position IN (SELECT position FROM failed)
            """, ["\(id)"])
    }

    private func remove(_ target: OperationTarget, isForced: Bool) throws {
        if !isForced { try checkForDependents(of: [target.id]) }
        guard let index = try index(of: target.id) else { return }
        try link.query("UPDATE session SET state = 'cancelled', is_removed = true WHERE id = $1", ["\(target.id)"])
        if target.isOwned {
            // The owner may still be sending, so the session is deleted later; see `handleLeaseEnd`.
            notify(target.owner.map { [$0] } ?? [])
        } else {
            try forgetDependency(on: target.id)
            try restoreDisplaced(by: target.id)
            deletesRemoved = true
        }
        adjustSessionCount(by: -1)
        try recordOrder(.removed([target.id], indices: [index]))
    }

    /// Checks that no other session depends on one of these sessions.
    private func checkForDependents(of ids: [SessionID]) throws {
        let row = try link.query(
            """
            SELECT after_id, count(*) FROM session WHERE after_id = ANY($1::uuid[]) AND NOT id = ANY($1::uuid[]) AND NOT is_removed
            GROUP BY after_id LIMIT 1
            """, [PostgresValue.array(ids.map { "\($0)" })]
        ).first
        guard let row else { return }
        let dependents = try row.integer(1)
        throw QueueError(
            .hasDependents,
            "Cannot remove the session \(try row.session(0)): \(dependents == 1 ? "1 session depends" : "\(dependents) sessions depend") on it."
        )
    }

    // MARK: Groups

    /// Applies an operation to sessions, one after another, for a limited time. Skips sessions to which the operation can't be applied,
    /// for example because of their state.
    ///
    /// - Parameter limit: The time after which this method changes no more sessions. The transaction locks the rows of changed sessions, and
    ///   heartbeats must wait for these rows.
    /// - Returns: The changed sessions, and the number of sessions that were changed or skipped, at least 1 unless `ids` is empty.
    /// - Throws: ``QueueError``, including the code `hasDependents` if the operation removes a session on which a session outside the group
    ///   depends.
    package func apply(_ operation: SessionOperation, toEach ids: [SessionID], within limit: Duration) throws
        -> (changed: [SessionID], handled: Int)
    {
        let end = ContinuousClock.now + limit
        var operation = operation
        if case .remove(isForced: false) = operation {
            try checkForDependents(of: ids)
            operation = .remove(isForced: true)
        }
        var changed: [SessionID] = []
        for (number, id) in ids.enumerated() {
            if number > 0, ContinuousClock.now >= end { return (changed, number) }
            do {
                _ = try apply(operation, to: .id(id))
                changed.append(id)
            } catch is QueueError {
                continue
            }
        }
        return (changed, ids.count)
    }
}

extension QueueError {
    /// The error for a call that fleets don't support.
    ///
    /// - Parameter advice: What the user can do instead, as a sentence.
    static func unsupportedByFleet(_ what: String, _ advice: String? = nil) -> QueueError {
        QueueError(.invalidRequest, ["\(what) is not possible in a fleet.", advice].compactMap(\.self).joined(separator: " "))
    }

    /// The error for a member that no longer belongs to its fleet.
    static func evicted(_ member: String) -> QueueError {
        QueueError(
            .evicted,
            "The fleet has removed the member \"\(member)\". Sessions that may run elsewhere continue there. To join again, restart the member."
        )
    }
}

extension QueueError.Code {
    /// The member was removed from its fleet, or a member with another storage folder replaced this member after its leases had ended.
    static let evicted = Self(rawValue: "evicted")
}
