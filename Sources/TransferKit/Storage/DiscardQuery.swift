/// How the outbox of what is to be removed is asked: each statement names its index, which SQLite refuses if it can't be used. What is asked while
/// sessions run takes no longer the more there is.
package enum DiscardQuery {
    /// The transport of what an entry is about; NULL if it can't be read. The text is that of the index `discard_part`.
    static let transport = "CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END"

    private static let columns = "key, endpoint, data, confirmed, attempts, give_up_at"

    /// Whether anything is due at ?1.
    package static let hasDue =
        "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at <= ?1 AND held_by IS NULL)"

    /// The first ?2 of what is due at ?1, of all endpoints or of those in the JSON array ?3.
    package static func due(isLocalOnly: Bool) -> String {
        """
        SELECT \(columns) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))
            AND (?3 IS NULL OR \(place) IN (SELECT value FROM json_each(?3)))
        ORDER BY next_attempt_at, key LIMIT ?2
        """
    }

    /// The endpoints with something due at ?1.
    static func places(isLocalOnly: Bool) -> String {
        "SELECT DISTINCT \(place) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))"
    }

    /// At most 10,000 of what is due at ?1 at the endpoints in the JSON array ?2.
    private static let dueThere = """
        SELECT key FROM discard INDEXED BY discard_due
        WHERE next_attempt_at <= ?1 AND held_by IS NULL AND \(place) IN (SELECT value FROM json_each(?2))
        """

    /// Gives up what was to be given up by ?3.
    static let expire = "DELETE FROM discard WHERE key IN (\(dueThere) AND give_up_at <= ?3 LIMIT 10000)"

    /// Puts the rest off until ?3; the servers are left alone until ?4.
    static let postpone = "UPDATE discard SET next_attempt_at = ?3, left_alone_until = ?4 WHERE key IN (\(dueThere) LIMIT 10000)"

    /// Whether something is due after ?1.
    static let hasFar = "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL)"

    /// Makes at most 10,000 of the removals due at ?2 that are due after ?1.
    static let clamp = """
        UPDATE discard SET next_attempt_at = ?2, left_alone_until = 0
        WHERE key IN (SELECT key FROM discard INDEXED BY discard_due WHERE next_attempt_at > ?1 AND held_by IS NULL LIMIT 10000)
        """

    /// An endpoint as text; a damaged row can have bytes.
    private static let place = "ifnull(CAST(endpoint AS TEXT), '')"

    /// When something is due after ?1.
    package static func next(isLocalOnly: Bool) -> String {
        "SELECT min(next_attempt_at) FROM \(table(isLocalOnly)) WHERE next_attempt_at > ?1 AND \(condition(isLocalOnly))"
    }

    /// Where servers want to be left alone after ?1, and until when. Asked once.
    package static let leftAlone = """
        SELECT endpoint, max(left_alone_until) FROM discard INDEXED BY discard_left_alone
        WHERE left_alone_until > ?1 AND left_alone_until > 0 GROUP BY endpoint
        """

    /// The first ?3 after the key ?1 of what is due later than ?2, though its server did not ask for that.
    package static let later = """
        SELECT \(columns) FROM discard INDEXED BY discard_put_off
        WHERE key > ?1 AND left_alone_until <= ?2 AND next_attempt_at > ?2 AND next_attempt_at > 0 AND held_by IS NULL AND json_valid(endpoint)
        ORDER BY key LIMIT ?3
        """

    /// Lets go of what the run of the session ?1 may still have completed.
    package static let release = "UPDATE discard INDEXED BY discard_held SET held_by = NULL WHERE held_by = ?1"

    private static func table(_ isLocalOnly: Bool) -> String { "discard INDEXED BY \(isLocalOnly ? "discard_part" : "discard_due")" }

    private static func condition(_ isLocalOnly: Bool) -> String {
        "held_by IS NULL" + (isLocalOnly ? " AND \(transport) = '\(LocalParts.transportID)'" : "")
    }
}
