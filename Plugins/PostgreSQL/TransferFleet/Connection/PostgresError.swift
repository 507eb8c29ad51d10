/// An error from PostgreSQL, or from the connection to PostgreSQL.
package struct PostgresError: Error, CustomStringConvertible {
    package enum Kind: Equatable {
        /// The connection can't be opened, or was lost. The last statement may have taken effect.
        case connection
        /// The server rejected a statement. The value is the SQLSTATE (PostgreSQL manual, appendix A).
        case statement(state: String)
        /// The server returned a value that this program can't read.
        case unreadable
    }

    package let kind: Kind
    package let message: String

    package var description: String { message }

    /// Whether the transaction was rolled back only because of concurrent transactions, so that a repetition can succeed: serialization_failure,
    /// deadlock_detected.
    var isConflict: Bool { [.statement(state: "40001"), .statement(state: "40P01")].contains(kind) }

    /// Whether the server rejected a statement because of its values, so that a repetition would fail in the same way. False for errors that
    /// a retry or an administrator can fix: conflicts, problems of the server or of the connection, missing tables, missing privileges and
    /// internal errors (classes 08, 25, 40, 42, 53, 55, 57, 58 and XX).
    var isRejection: Bool {
        guard case .statement(let state) = kind else { return false }
        return !["08", "25", "40", "42", "53", "55", "57", "58", "XX"].contains(state.prefix(2))
    }

    /// The error for a text value that PostgreSQL can't store: character_not_in_repertoire.
    static let zeroByte = PostgresError(
        kind: .statement(state: "22021"), message: "A value contains a zero byte, which PostgreSQL can't store.")

    /// Whether a row with the same key exists: unique_violation.
    var isDuplicate: Bool { kind == .statement(state: "23505") }

    /// Whether a calculated number exceeds the range of its type: numeric_value_out_of_range.
    var isOutOfRange: Bool { kind == .statement(state: "22003") }

    static func unreadable(_ what: String) -> PostgresError {
        PostgresError(kind: .unreadable, message: "The fleet's database has an unreadable value: \(what).")
    }
}
