/// The SQL statements for the outbox: the table `discard`, the list of pending removals. A removal deletes an unfinished upload, a part
/// file, or content that a completed file left on a server.
///
/// Each statement, except those for given keys, names its index, so SQLite rejects the statement if the index can't be used.
///
/// A held removal (`held_by`) is never due. If `isLocalOnly` is true, a statement selects only removals of part files on this machine.
package enum DiscardQuery {
    /// An SQL expression for the transport of a removal; NULL if the transport can't be read. SQLite uses the index `discard_part` only for
    /// exactly this expression.
    static let transport = "CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END"

    /// The age, in milliseconds, at which the queue abandons a removal.
    static let lifetime: Int64 = 7 * 24 * 3_600_000
    /// The longest plausible time, in milliseconds, by which a deadline can be overdue. A longer time means that a clock was wrong, or that
    /// no process opened the queue for a long time. ``Scheduler/load(seen:steady:)`` uses the same limit for the time between two
    /// processes.
    static let longestOverdue: Int64 = 30 * 24 * 3_600_000
    /// The tolerance for corrections of the clock, in milliseconds. A stored time is implausibly late only if it exceeds the latest valid
    /// time by more than this tolerance.
    static let tolerance: Int64 = 3_600_000

    /// An SQL expression for the deadline of a removal. If the stored deadline is implausible, the value is a new deadline.
    ///
    /// - Parameter now: The SQL parameter with the current time.
    private static func deadline(at now: String) -> String {
        let isPlausible = "give_up_at BETWEEN \(now) - \(longestOverdue) AND \(now) + \(lifetime + tolerance)"
        return "CASE WHEN \(isPlausible) THEN give_up_at ELSE \(now) + \(lifetime) END"
    }

    private static let columns = "key, endpoint, data, confirmed, attempts, give_up_at"

    /// Selects whether any removal is due at the time ?1.
    package static let hasDue =
        "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at <= ?1 AND held_by IS NULL)"

    /// Selects the first ?2 removals that are due at ?1, at the endpoints in the JSON array ?3. If ?3 is NULL, at all endpoints.
    package static func due(isLocalOnly: Bool) -> String {
        """
        SELECT \(columns) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))
            AND (?3 IS NULL OR \(endpoint) IN (SELECT value FROM json_each(?3)))
        ORDER BY next_attempt_at, key LIMIT ?2
        """
    }

    /// Selects the endpoints with a removal that is due at ?1.
    static func dueEndpoints(isLocalOnly: Bool) -> String {
        "SELECT DISTINCT \(endpoint) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))"
    }

    /// Selects the removals that are due at ?1, at the endpoints in the JSON array ?2.
    private static let dueAtEndpoints = """
        SELECT key FROM discard INDEXED BY discard_due
        WHERE next_attempt_at <= ?1 AND held_by IS NULL AND \(endpoint) IN (SELECT value FROM json_each(?2))
        """

    /// Deletes at most 10,000 removals with a plausible deadline at or before ?3. The removals are due at the current time ?1, at the
    /// endpoints in the JSON array ?2.
    static let expire =
        "DELETE FROM discard WHERE key IN (\(dueAtEndpoints) AND give_up_at BETWEEN ?1 - \(longestOverdue) AND ?3 LIMIT 10000)"

    /// Postpones at most 10,000 removals until ?3, and corrects implausible deadlines of these removals. The removals are due at the
    /// current time ?1, at the endpoints in the JSON array ?2. The parameter ?4 is the time until which the servers asked the queue to back
    /// off, or 0 without such a request.
    static let postpone = """
        UPDATE discard SET next_attempt_at = ?3, left_alone_until = ?4, give_up_at = \(deadline(at: "?1"))
        WHERE key IN (\(dueAtEndpoints) LIMIT 10000)
        """

    /// Makes the removals with the keys in the JSON array ?1 due, and ends the delays that their servers requested.
    static let makeDue = "UPDATE discard SET next_attempt_at = 0, left_alone_until = 0 WHERE key IN (SELECT value FROM json_each(?1))"

    /// Corrects implausible deadlines of the removals with the keys in the JSON array ?1. The parameter ?2 is the current time.
    static let correctDeadlines =
        "UPDATE discard SET give_up_at = \(deadline(at: "?2")) WHERE key IN (SELECT value FROM json_each(?1))"

    /// Selects whether any removal is due after ?1, the latest time to which a process with a correct clock postpones a removal.
    static let hasImplausiblyLate =
        "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL)"

    /// Changes the due time of at most 10,000 removals to the current time ?2, and corrects implausible deadlines of these removals. The
    /// removals are due after ?1, because a wrong clock postponed them.
    static let clamp = """
        UPDATE discard SET next_attempt_at = ?2, left_alone_until = 0, give_up_at = \(deadline(at: "?2"))
        WHERE key IN (SELECT key FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL LIMIT 10000)
        """

    /// An SQL expression for the endpoint of a removal as text. A damaged row can contain a BLOB instead.
    private static let endpoint = "ifnull(CAST(endpoint AS TEXT), '')"

    /// Selects the first time after ?1 at which a removal is due.
    package static func next(isLocalOnly: Bool) -> String {
        "SELECT min(next_attempt_at) FROM \(table(isLocalOnly)) WHERE next_attempt_at > ?1 AND \(condition(isLocalOnly))"
    }

    /// Selects the endpoints that asked the queue to back off until a time after ?1, and the end of each requested delay. A queue usually
    /// runs this statement only once, soon after the opening.
    package static let backOffEndpoints = """
        SELECT endpoint, max(left_alone_until) FROM discard INDEXED BY discard_left_alone
        WHERE left_alone_until > ?1 AND left_alone_until > 0 GROUP BY endpoint
        """

    /// Selects the removals that are due after ?2, except removals whose server asked the queue to back off beyond ?2. Selects at most ?3
    /// removals whose keys are greater than ?1.
    package static let later = """
        SELECT \(columns) FROM discard INDEXED BY discard_put_off
        WHERE key > ?1 AND left_alone_until <= ?2 AND next_attempt_at > ?2 AND next_attempt_at > 0 AND held_by IS NULL AND json_valid(endpoint)
        ORDER BY key LIMIT ?3
        """

    /// Releases the held removals of the removed session ?1, whose run has ended or was abandoned.
    package static let release = "UPDATE discard INDEXED BY discard_held SET held_by = NULL WHERE held_by = ?1"

    private static func table(_ isLocalOnly: Bool) -> String { "discard INDEXED BY \(isLocalOnly ? "discard_part" : "discard_due")" }

    private static func condition(_ isLocalOnly: Bool) -> String {
        "held_by IS NULL" + (isLocalOnly ? " AND \(transport) = '\(TransportID.localPartFiles)'" : "")
    }
}
