import Foundation
import TransferCore
package import TransferKit

/// A row of the table `session`, with the content of the session.
struct FleetSessionRow: Sendable {
    var id: SessionID
    var state: SessionState
    var owner: String?
    var place: FleetPlace
    var notBefore: Date?
    /// Whether the start time is in the future, according to the database's clock.
    var isBeforeStartTime: Bool
    var after: (id: SessionID, state: SessionState, acceptsAnyEnd: Bool)?
    var displacedBy: SessionID?
    var statistics: SessionStatistics
    var attempts: Int
    var error: TransferError?
    var createdAt: Date
    var startedAt: Date?
    var endedAt: Date?
    var draft: SessionDraft
    var isAccountFull: Bool
    /// Whether a live member may run the session.
    var hasMember: Bool
    /// The members that can't run the session, with the messages of their errors.
    var refusals: [(member: String, message: String)]
}

/// The state of a fleet that the statuses of its sessions depend on.
struct FleetState: Sendable {
    var isStopped: Bool
    var isStrict: Bool
    var maxSessions: Int?
    var rateLimit: Int64?
    var retention: Retention
    var orderRevision: UInt64
    var revision: UInt64
    /// The number of sessions by state. A session that its owner is stopping is included under its new state.
    var counts: [SessionState: Int]
    /// The number of sessions with an owner.
    var owned: Int
    /// The number of waiting sessions whose start time is in the future.
    var scheduled: Int
    /// The earliest start time among the waiting sessions whose start time is in the future; nil if there are none.
    var nextDue: Date?
    /// The free slots of all live members.
    var freeSlots: Int
    /// The first session in the start order, except sessions that wait for a start time, a dependency or a displacement.
    var first: SessionID?
}

extension FleetStore {
    func state() async throws -> FleetState {
        try await unlocked { try $0.fleetState() }
    }

    /// The sessions that a condition selects, in order, with their indices.
    ///
    /// - Parameters:
    ///   - range: The indices of the sessions; nil for all. Only the sessions in the range are read and numbered.
    ///   - selectsFewSessions: Whether the condition selects only a few sessions. The query then determines each index separately, instead of
    ///     numbering all sessions.
    func sessions(where condition: String = "true", _ values: [String?] = [], range: Range<Int>? = nil, selectsFewSessions: Bool = false)
        async throws
        -> (state: FleetState, rows: [(index: Int, row: FleetSessionRow)])
    {
        let numbered =
            if let range {
                """
                SELECT *, \(range.lowerBound) + row_number() OVER (ORDER BY position, id) AS n FROM (
                    SELECT * FROM session WHERE NOT is_removed ORDER BY position, id OFFSET \(range.lowerBound) LIMIT \(range.count)) AS session
                """
            } else if selectsFewSessions {
                """
                SELECT *, (SELECT count(*) FROM session AS other
                    WHERE NOT other.is_removed AND (other.position, other.id) <= (session.position, session.id)) AS n
                FROM session WHERE NOT is_removed AND \(condition)
                """
            } else {
                "SELECT *, row_number() OVER (ORDER BY position, id) AS n FROM session WHERE NOT is_removed"
            }
        return try await unlocked { link in
            let rows = try link.query(
                """
                SELECT session.id, session.state, owner, place, extract(epoch FROM not_before), after_id, after_any,
                    (SELECT state FROM session AS other WHERE other.id = session.after_id), displaced_by, statistics, attempts, error,
                    extract(epoch FROM created_at), extract(epoch FROM started_at), extract(epoch FROM ended_at), draft,
                    account.max_sessions IS NOT NULL AND account.max_sessions <=
                        (SELECT count(*) FROM session AS other WHERE other.owner IS NOT NULL AND other.account = session.account),
                    \(FleetPlace.liveMemberMayRun("session")), session.n - 1, session.account,
                    (SELECT json_agg(json_build_array(member, error) ORDER BY member) FROM session_refusal
                        WHERE session_refusal.session = session.id),
                    coalesce(not_before > clock_timestamp(), false)
                FROM (\(numbered)) AS session
                LEFT JOIN content ON content.session = session.id JOIN account ON account.name = session.account
                WHERE \(condition) ORDER BY n
                """, values)
            return (try link.fleetState(), try rows.map { (Int(clamping: try $0.integer(18)), try FleetSessionRow($0)) })
        }
    }

    /// The stored progress of a session's files.
    package func progress(of id: SessionID) async throws -> [FileProgress] {
        try await unlocked { try FleetTransaction($0).progress(of: id) }
    }

    package func sessionIDs() async throws -> [SessionID] {
        try await unlocked { link in
            try link.query("SELECT id FROM session WHERE NOT is_removed ORDER BY position, id").map { try $0.session(0) }
        }
    }

    /// The stored events after a revision, and the progress of the running sessions.
    package struct Changes: Sendable {
        /// At most the requested number of events, without those that this version can't read.
        package var events: [QueueEvent] = []
        /// ``events`` contains all readable events after the requested revision, up to and including this revision.
        package var end: UInt64 = 0
        /// The statistics of all running sessions; nil if more events may follow ``end``.
        package var running: [SessionID: SessionStatistics]?
    }

    /// Reads at most `limit` events after a revision, and the progress of the running sessions.
    package func changes(after known: UInt64, limit: Int) async throws -> Changes {
        try await unlocked { link in
            var changes = Changes()
            // Read the revision first, so that the query below finds all events up to this revision.
            changes.end = try link.query("SELECT revision FROM fleet").first.map { UInt64(clamping: try $0.integer(0)) } ?? 0
            let rows = try link.query(
                "SELECT revision, extract(epoch FROM at), kind FROM event WHERE revision > $1 ORDER BY revision LIMIT $2",
                ["\(Int64(clamping: known))", "\(limit)"])
            changes.events = try rows.compactMap { row in
                // Readers handle a missing revision like a removed event.
                var problem: TransferError?
                return try row.readable(QueueEvent.Kind.self, 2, &problem).map { kind in
                    QueueEvent(revision: UInt64(clamping: try row.integer(0)), time: try row.date(1) ?? .distantPast, kind: kind)
                }
            }
            let last = try rows.last.map { UInt64(clamping: try $0.integer(0)) }
            guard rows.count < limit else {
                changes.end = last ?? changes.end
                return changes
            }
            changes.end = max(changes.end, last ?? 0)
            var running: [SessionID: SessionStatistics] = [:]
            for row in try link.query("SELECT id, statistics FROM session WHERE owner IS NOT NULL AND state = 'running'") {
                var problem: TransferError?
                running[try row.session(0)] = try row.readable(SessionStatistics.self, 1, &problem)
            }
            changes.running = running
            return changes
        }
    }

    func statistics() async throws -> [(state: SessionState?, statistics: SessionStatistics)] {
        let rows = try await unlocked { try $0.query("SELECT state, statistics FROM session WHERE NOT is_removed") }
        return try rows.map { row in
            var problem: TransferError?
            return (SessionState(rawValue: try row.text(0)), try row.readable(SessionStatistics.self, 1, &problem) ?? SessionStatistics())
        }
    }

    /// The ID of the fleet, which is stored in its database.
    package func identity() async throws -> String {
        guard let row = try await unlocked({ try $0.query("SELECT id FROM fleet") }).first else {
            throw PostgresError.unreadable("the table fleet is empty")
        }
        return try row.text(0)
    }
}

extension FleetSessionRow {
    fileprivate init(_ row: PostgresRow) throws {
        let after: (id: SessionID, state: SessionState, acceptsAnyEnd: Bool)? =
            try row.optional(5) == nil
            ? nil : (try row.session(5), SessionState(rawValue: try row.optional(7) ?? "") ?? .cancelled, try row.flag(6))
        let id = try row.session(0)
        var problem: TransferError?
        let draft = try row.readable(SessionDraft.self, 15, &problem)
        if draft == nil { problem = problem ?? .unreadable(.unreadable("the session \(id) has no content")) }
        let statistics = try row.readable(SessionStatistics.self, 9, &problem)
        let error = try row.readable(TransferError.self, 11, &problem)
        self.init(
            id: id, state: SessionState(rawValue: try row.text(1)) ?? .held, owner: try row.optional(2),
            place: FleetPlace(stored: try row.text(3)), notBefore: try row.date(4), isBeforeStartTime: try row.flag(21), after: after,
            displacedBy: try row.optional(8) == nil ? nil : try row.session(8), statistics: statistics ?? SessionStatistics(),
            attempts: Int(clamping: try row.integer(10)), error: problem ?? error,
            createdAt: try row.date(12) ?? .distantPast, startedAt: try row.date(13), endedAt: try row.date(14),
            draft: try draft ?? SessionDraft(id: id, account: row.text(19), name: "unreadable"), isAccountFull: try row.flag(16),
            hasMember: try row.flag(17), refusals: try Self.refusals(in: row))
    }
}

extension FleetSessionRow {
    private static func refusals(in row: PostgresRow) throws(PostgresError) -> [(member: String, message: String)] {
        guard try row.optional(20) != nil else { return [] }
        return try row.json([[String]].self, 20).compactMap { pair in
            guard let member = pair.first, let text = pair.last else { return nil }
            let error = try? JSONDecoder().decode(TransferError.self, from: Data(text.utf8))
            return (member, error?.message ?? "The error can't be read.")
        }
    }
}

extension PostgresLink {
    fileprivate func fleetState() throws -> FleetState {
        let row = try query(
            """
            SELECT is_stopped, is_strict, max_sessions, order_revision, revision,
                (SELECT coalesce(json_object_agg(state, n), '{}') FROM
                    (SELECT state, count(*) AS n FROM session WHERE NOT is_removed GROUP BY state) AS counts),
                (SELECT count(*) FROM session WHERE owner IS NOT NULL),
                (SELECT count(*) FROM session WHERE state = 'waiting' AND not_before > clock_timestamp()),
                (SELECT extract(epoch FROM min(not_before)) FROM session WHERE state = 'waiting' AND not_before > clock_timestamp()),
                (SELECT coalesce(sum(greatest(slots - (SELECT count(*) FROM session WHERE owner = member.name), 0)), 0)
                    FROM member WHERE live_until > clock_timestamp()),
                (SELECT id FROM session WHERE state = 'waiting' AND owner IS NULL AND after_id IS NULL AND displaced_by IS NULL
                    AND (not_before IS NULL OR not_before <= clock_timestamp()) ORDER BY lane, mark DESC, position, id LIMIT 1),
                retention, rate_limit
            FROM fleet
            """
        ).first
        guard let row else { throw PostgresError.unreadable("the table fleet is empty") }
        var counts: [SessionState: Int] = [:]
        for (name, count) in try row.json([String: Int].self, 5) { if let state = SessionState(rawValue: name) { counts[state] = count } }
        var problem: TransferError?
        let retention = try row.readable(Retention.self, 11, &problem)
        return FleetState(
            isStopped: try row.flag(0), isStrict: try row.flag(1), maxSessions: try row.optionalInteger(2).map { Int(clamping: $0) },
            rateLimit: try row.optionalInteger(12), retention: retention ?? .keepAll,
            orderRevision: UInt64(clamping: try row.integer(3)), revision: UInt64(clamping: try row.integer(4)), counts: counts,
            owned: Int(clamping: try row.integer(6)), scheduled: Int(clamping: try row.integer(7)), nextDue: try row.date(8),
            freeSlots: Int(clamping: try row.integer(9)), first: try row.optional(10) == nil ? nil : try row.session(10))
    }
}
