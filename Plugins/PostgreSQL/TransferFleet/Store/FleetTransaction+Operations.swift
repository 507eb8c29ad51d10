package import TransferKit

/// A session's columns that decide which operations are valid.
private struct OperationTarget {
    var id: SessionID
    var state: SessionState
    /// Whether a member has the session, and has not stopped it yet.
    var isOwned: Bool
}

extension FleetTransaction {
    /// Applies an operation to one session.
    ///
    /// - Returns: For a pause, the new state; otherwise nil.
    /// - Throws: ``QueueError``.
    package func apply(_ operation: SessionOperation, to reference: SessionReference) throws -> SessionState? {
        let id = try resolve(reference)
        guard let row = try link.query("SELECT state, owner IS NOT NULL FROM session WHERE id = $1 FOR UPDATE", ["\(id)"]).first,
            let state = SessionState(rawValue: try row.text(0))
        else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        let target = OperationTarget(id: id, state: state, isOwned: try row.flag(1))
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
            try link.query(
                "UPDATE session SET lane = 4, not_before = clock_timestamp() + interval '5 s' WHERE id = $1", ["\(id)"])
        case .cancel(discarding: false):
            try require(target, operation, [.waiting, .running, .paused, .held, .failed])
            try set(target, .cancelled)
            try satisfyDependents(of: id, isCompleted: false)
        case .cancel(discarding: true):
            throw QueueError.unsupportedByFleet("Cancelling with the removal of unfinished uploads")
        case .retry:
            try require(target, operation, [.failed, .cancelled])
            try restart(id, isWhole: false)
            try set(target, .waiting)
        case .move(let destination): try move(id, to: destination)
        case .remove(let isForced): try remove(target, isForced: isForced)
        case .enqueue: throw QueueError.unsupportedByFleet("A draft")
        case .update: throw QueueError.unsupportedByFleet("Changing a session")
        }
        return nil
    }

    private func require(_ target: OperationTarget, _ operation: SessionOperation, _ states: [SessionState]) throws {
        guard states.contains(target.state) else {
            throw QueueError(
                .invalidTransition, "The session \(target.id) is \(target.state.rawValue), so it can't be \(operation.participle).")
        }
    }

    /// Changes the state of a session. Its owner, if any, follows at its next heartbeat or notification.
    private func set(_ target: OperationTarget, _ state: SessionState) throws {
        try link.query(
            """
            UPDATE session SET state = $2, displaced_by = NULL, ended_at = CASE WHEN $2 = 'cancelled' THEN clock_timestamp() END
            WHERE id = $1
            """, ["\(target.id)", state.rawValue])
        // A paused session keeps its slot. A session with an owner gives its slot up later; see `released`.
        if !target.isOwned, state != .paused, state != .waiting { try restoreDisplaced(by: target.id) }
        record(state == .cancelled ? .cancelled([target.id]) : .changed([target.id], state))
    }

    private func run(_ target: OperationTarget, again: Bool) throws {
        switch target.state {
        case .running: return
        case .paused: return try set(target, .running)
        case .completed:
            guard again else {
                throw QueueError(.alreadyCompleted, "The session \(target.id) is completed. To transfer it again, run it with `again`.")
            }
            try restart(target.id, isWhole: true)
        case .failed, .cancelled: try restart(target.id, isWhole: false)
        case .waiting, .held: break
        case .draft: throw QueueError.unsupportedByFleet("A draft")
        }
        // The order, a hold, a start time, a dependency and a displacement no longer matter.
        try set(target, .waiting)
        try link.query(
            "UPDATE session SET lane = 0, mark = $2, after_id = NULL, not_before = NULL WHERE id = $1", ["\(target.id)", try nextMark()])
        try displace(for: target.id)
    }

    /// Forgets the failures of a session's files, or all progress.
    private func restart(_ id: SessionID, isWhole: Bool) throws {
        do {
            try link.query("UPDATE session SET error = NULL, ended_at = NULL, attempts = 0 WHERE id = $1", ["\(id)"])
            if isWhole {
                // Not supported: a second transfer needs a new generation of each file, so that its uploads don't reuse the names of the first
                // transfer.
                throw QueueError.unsupportedByFleet("Transferring a completed session again")
            }
            try link.query(
                "DELETE FROM progress WHERE session = $1 AND part = 'end' AND event::json ->> 'failed' IS NOT NULL", ["\(id)"])
        } catch let error as PostgresError where error.isDuplicate {
            throw QueueError(.duplicate, "Another session with the same deduplication key as \(id) is not completed.")
        }
    }

    private func remove(_ target: OperationTarget, isForced: Bool) throws {
        let dependents = try link.query("SELECT 1 FROM session WHERE after_id = $1", ["\(target.id)"]).count
        guard dependents == 0 || isForced else {
            throw QueueError(
                .hasDependents,
                "Cannot remove the session \(target.id): \(dependents == 1 ? "1 session depends" : "\(dependents) sessions depend") on it.")
        }
        guard let index = try index(of: target.id) else { return }
        try link.query("UPDATE session SET after_id = NULL WHERE after_id = $1", ["\(target.id)"])
        if target.isOwned {
            try link.query("UPDATE session SET state = 'cancelled', is_removed = true WHERE id = $1", ["\(target.id)"])
        } else {
            try restoreDisplaced(by: target.id)
            try link.query("DELETE FROM session WHERE id = $1", ["\(target.id)"])
        }
        try recordOrder(.removed([target.id], indices: [index]))
    }
}

extension QueueError {
    /// The error for a call that fleets don't support.
    static func unsupportedByFleet(_ what: String) -> QueueError {
        QueueError(.invalidRequest, "\(what) is not possible in a fleet.")
    }

    /// The error for a member that no longer belongs to its fleet.
    static func evicted(_ member: String) -> QueueError {
        QueueError(
            .evicted, "The fleet has removed the member \"\(member)\". Its sessions continue on other members. To join again, restart it.")
    }
}

extension QueueError.Code {
    /// A member was removed from its fleet, or another process joined with the same storage folder.
    static let evicted = Self(rawValue: "evicted")
}
