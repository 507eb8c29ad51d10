import CPostgres
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
        // libpq would read part of the password as the host, the port or the database, and repeat this part in its messages.
        if let user = Self.split(text).user, user.contains(where: { "/?#@".contains($0) }) {
            throw QueueError(
                .invalidRequest,
                "The user or the password in the URL of the fleet contains /, ?, # or @. Write %2F, %3F, %23 or %40 instead, also for @ in options, or use PGPASSWORD or ~/.pgpass."
            )
        }
        guard Self.isValid(text) else {
            throw QueueError(
                .invalidRequest,
                "The URL of the fleet is not valid. Write postgresql://user@host:port/database?options, with percent codes for special characters, for example %25 for %."
            )
        }
        self.text = text
    }

    /// The URL for use in messages, without a user, password or options.
    package var location: String { "postgresql://\(Self.split(text).rest.prefix { $0 != "?" })" }

    /// Returns the user name with the password, if any, and the rest of the URL after the `@`.
    private static func split(_ text: String) -> (user: Substring?, rest: Substring) {
        let rest = text.drop { $0 != ":" }.dropFirst(3)
        guard let at = rest.lastIndex(of: "@") else { return (nil, rest) }
        return (rest[..<at], rest[rest.index(after: at)...])
    }

    /// Whether libpq can read the URL. Ignores the messages of libpq, because they repeat parts of the URL.
    private static func isValid(_ text: String) -> Bool {
        guard let options = unsafe PQconninfoParse(text, nil) else { return false }
        defer { unsafe PQconninfoFree(options) }
        var option = unsafe options
        while let keyword = unsafe option.pointee.keyword {
            // Without a host after the password, libpq reads the password as the port.
            if unsafe String(cString: keyword) == "port", let port = unsafe option.pointee.val {
                guard unsafe String(cString: port).utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2C }) else { return false }
            }
            unsafe option += 1
        }
        return true
    }
}
