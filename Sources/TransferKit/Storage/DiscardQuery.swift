/// How the outbox of what is to be removed is asked: each statement names its index, which SQLite refuses if it can't be used. What is asked while
/// sessions run takes no longer the more there is.
package enum DiscardQuery {
    /// The transport of what an entry is about; NULL if it can't be read. The text is that of the index `discard_part`.
    static let transport = "CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END"

    private static let columns = "key, endpoint, data, confirmed, attempts, give_up_at"

    /// Whether anything is due at ?1.
    package static let hasDue =
        "SELECT EXISTS (SELECT 1 FROM discard INDEXED BY discard_due WHERE next_attempt_at <= ?1 AND held_by IS NULL)"

    /// The first ?2 of what is due at ?1.
    package static func due(isLocalOnly: Bool) -> String {
        """
        SELECT \(columns) FROM \(table(isLocalOnly)) WHERE next_attempt_at <= ?1 AND \(condition(isLocalOnly))
        ORDER BY next_attempt_at, key LIMIT ?2
        """
    }

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
