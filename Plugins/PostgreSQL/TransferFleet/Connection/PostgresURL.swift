package import TransferKit

/// The URL of a fleet's database: `postgresql://user@host:port/database?options` (PostgreSQL manual, section 34.1.1.2).
package struct PostgresURL: Sendable {
    /// The URL as libpq reads it. It can contain a password.
    package let text: String

    /// - Throws: ``QueueError`` with the code `invalidRequest`. The message contains no part of the URL that could be a password.
    package init(_ text: String) throws(QueueError) {
        guard ["postgresql://", "postgres://"].contains(where: { text.hasPrefix($0) }) else {
            throw QueueError(
                .invalidRequest,
                "The URL of a fleet must begin with postgresql://, for example postgresql://transferq@db.example.com/transferq.")
        }
        guard !text.utf8.contains(0) else { throw QueueError(.invalidRequest, "The URL of the fleet contains a zero byte.") }
        self.text = text
    }

    /// The URL for use in messages, without a user, password or options.
    package var location: String {
        let rest = text.drop { $0 != ":" }.dropFirst(3).prefix { $0 != "?" }
        let host = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return "postgresql://\(host)"
    }
}
