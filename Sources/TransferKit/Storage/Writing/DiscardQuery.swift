/// The statements for the discard outbox, the table `discard` of pending removals. Each statement names its index, so SQLite rejects the statement if
/// the index can't be used. Statements that are used while sessions run take a time that does not depend on the size of the outbox.
package enum DiscardQuery {
    /// The transport of an entry; NULL if it can't be read. The same text as in the index `discard_part`.
    static let transport = "CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END"

    private static let columns = "key, endpoint, data, confirmed, attempts, give_up_at"

    /// Whether an entry is due at ?1.
    package static let hasDue =
        "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at <= ?1 AND held_by IS NULL)"

    /// Selects the first ?2 entries due at ?1, at all endpoints or at the endpoints in the JSON array ?3.
    package static func due(isLocalOnly: Bool) -> String {
        """
        SELECT \(columns) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))
            AND (?3 IS NULL OR \(place) IN (SELECT value FROM json_each(?3)))
        ORDER BY next_attempt_at, key LIMIT ?2
        """
    }

    /// Selects the endpoints with an entry due at ?1.
    static func places(isLocalOnly: Bool) -> String {
        "SELECT DISTINCT \(place) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))"
    }

    /// Selects entries due at ?1 at the endpoints in the JSON array ?2.
    private static let dueThere = """
        SELECT key FROM discard INDEXED BY discard_due
        WHERE next_attempt_at <= ?1 AND held_by IS NULL AND \(place) IN (SELECT value FROM json_each(?2))
        """

    /// Gives up at most 10,000 entries with a deadline before or at ?3.
    static let expire = "DELETE FROM discard WHERE key IN (\(dueThere) AND give_up_at <= ?3 LIMIT 10000)"

    /// Postpones at most 10,000 other entries until ?3; the queue backs off from their servers until ?4.
    static let postpone = "UPDATE discard SET next_attempt_at = ?3, left_alone_until = ?4 WHERE key IN (\(dueThere) LIMIT 10000)"

    /// Whether an entry is due after ?1.
    static let hasFar = "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL)"

    /// Makes at most 10,000 entries that are due after ?1 due at ?2.
    static let clamp = """
        UPDATE discard SET next_attempt_at = ?2, left_alone_until = 0
        WHERE key IN (SELECT key FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL LIMIT 10000)
        """

    /// An endpoint as text; a damaged row can contain a BLOB.
    private static let place = "ifnull(CAST(endpoint AS TEXT), '')"

    /// Selects the first time after ?1 at which an entry is due.
    package static func next(isLocalOnly: Bool) -> String {
        "SELECT min(next_attempt_at) FROM \(table(isLocalOnly)) WHERE next_attempt_at > ?1 AND \(condition(isLocalOnly))"
    }

    /// Selects the endpoints that asked the queue to back off until a time after ?1, and the end of the requested delay. Runs once in each process.
    package static let pausedServers = """
        SELECT endpoint, max(left_alone_until) FROM discard INDEXED BY discard_left_alone
        WHERE left_alone_until > ?1 AND left_alone_until > 0 GROUP BY endpoint
        """

    /// Selects the first ?3 entries after the key ?1 that are due after ?2 although their servers did not ask for a delay.
    package static let later = """
        SELECT \(columns) FROM discard INDEXED BY discard_put_off
        WHERE key > ?1 AND left_alone_until <= ?2 AND next_attempt_at > ?2 AND next_attempt_at > 0 AND held_by IS NULL AND json_valid(endpoint)
        ORDER BY key LIMIT ?3
        """

    /// Releases the entries of files that the run of the session ?1 could still have completed.
    package static let release = "UPDATE discard INDEXED BY discard_held SET held_by = NULL WHERE held_by = ?1"

    private static func table(_ isLocalOnly: Bool) -> String { "discard INDEXED BY \(isLocalOnly ? "discard_part" : "discard_due")" }

    private static func condition(_ isLocalOnly: Bool) -> String {
        "held_by IS NULL" + (isLocalOnly ? " AND \(transport) = '\(TransportID.localParts)'" : "")
    }
}
