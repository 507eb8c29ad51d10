import CPostgres

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An open connection to PostgreSQL. Its methods block, so call them only on the dispatch queue of ``PostgresConnection``.
@safe package final class PostgresLink {
    /// The maximum duration of a statement. The link detects a lost connection within this time.
    var statementTimeout = Duration.seconds(8)

    private let handle: OpaquePointer
    private(set) var isLost = false

    /// Opens a connection. Blocks for at most a few seconds, unless the URL has a longer `connect_timeout`.
    package init(_ url: PostgresURL) throws(PostgresError) {
        // libpq lets later parameters take precedence, so the URL can replace the defaults.
        let parameters = [
            ("connect_timeout", "5"), ("application_name", "transferq"), ("keepalives_idle", "5"), ("keepalives_interval", "2"),
            ("keepalives_count", "3"), ("tcp_user_timeout", "8000"), ("client_encoding", "UTF8"), ("dbname", url.text),
        ]
        let opened = unsafe Self.withCStrings(parameters.map { $0.0 as String? } + [nil]) { names in
            unsafe Self.withCStrings(parameters.map { $0.1 as String? } + [nil]) { values in unsafe PQconnectdbParams(names, values, 1) }
        }
        guard let opened = unsafe opened else {
            throw PostgresError(kind: .connection, message: "Out of memory.")
        }
        guard unsafe PQstatus(opened) == CONNECTION_OK, unsafe PQsetnonblocking(opened, 1) == 0 else {
            let message = unsafe String(cString: PQerrorMessage(opened))
            unsafe PQfinish(opened)
            throw PostgresError(kind: .connection, message: Self.sentence(message))
        }
        // By default, libpq prints notices of the server to standard error.
        unsafe PQsetNoticeProcessor(opened, { _, _ in }, nil)
        unsafe handle = opened
    }

    deinit { unsafe PQfinish(handle) }

    var socket: CInt { unsafe PQsocket(handle) }

    /// Returns whether the server process with this ID accepted the connection. If not, the connection goes through a pooler such as
    /// PgBouncer, which reports its own process ID when it opens a connection.
    func isServedBy(process: Int64) -> Bool { unsafe Int64(PQbackendPID(handle)) == process }

    /// Runs one statement with parameters, which are sent as text.
    @discardableResult
    package func query(_ statement: String, _ values: [String?] = []) throws(PostgresError) -> [PostgresRow] {
        // libpq reads text only up to the first zero byte.
        guard !values.contains(where: { $0?.utf8.contains(0) == true }) else { throw .zeroByte }
        guard let count = Int32(exactly: values.count) else { throw .unreadable("too many parameters") }
        let sent = unsafe Self.withCStrings(values) { values in
            unsafe PQsendQueryParams(handle, statement, count, nil, values, nil, nil, 0)
        }
        return try receive(sent)
    }

    /// Runs statements without parameters, separated by semicolons.
    package func execute(_ statements: String) throws(PostgresError) {
        _ = try receive(unsafe PQsendQuery(handle, statements))
    }

    /// Reads the notifications that have arrived, after waiting at most `timeout` for the first one.
    ///
    /// - Returns: The distinct payloads.
    func awaitNotifications(timeout: Duration) throws(PostgresError) -> Set<String> {
        var found = takeNotifications()
        if found.isEmpty, try poll(POLLIN, timeout) {
            guard unsafe PQconsumeInput(handle) == 1 else { throw lost() }
            found = takeNotifications()
        }
        return found
    }

    private func takeNotifications() -> Set<String> {
        var found: Set<String> = []
        while let notification = unsafe PQnotifies(handle) {
            unsafe found.insert(String(cString: notification.pointee.extra))
            unsafe PQfreemem(notification)
        }
        return found
    }

    // MARK: Results

    private func receive(_ sent: CInt) throws(PostgresError) -> [PostgresRow] {
        guard sent == 1 else { throw lost() }
        let end = ContinuousClock.now + statementTimeout
        var rows: [PostgresRow] = []
        var failure: PostgresError?
        while true {
            try awaitResult(until: end)
            guard let result = unsafe PQgetResult(handle) else { break }
            defer { unsafe PQclear(result) }
            switch unsafe PQresultStatus(result) {
            case PGRES_TUPLES_OK: rows = unsafe PostgresRow.rows(of: result)
            case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: break
            default: if failure == nil { failure = unsafe error(of: result) }
            }
        }
        if unsafe PQstatus(handle) != CONNECTION_OK { throw lost() }
        if let failure { throw failure }
        return rows
    }

    private func awaitResult(until end: ContinuousClock.Instant) throws(PostgresError) {
        while true {
            let unsent = unsafe PQflush(handle)
            guard unsent >= 0 else { throw lost() }
            if unsent == 0, unsafe PQisBusy(handle) == 0 { return }
            guard try poll(POLLIN | (unsent == 1 ? POLLOUT : 0), end - ContinuousClock.now) else {
                isLost = true
                throw PostgresError(kind: .connection, message: "The server did not respond within \(statementTimeout).")
            }
            guard unsafe PQconsumeInput(handle) == 1 else { throw lost() }
        }
    }

    private func poll(_ events: CInt, _ timeout: Duration) throws(PostgresError) -> Bool {
        let end = ContinuousClock.now + timeout
        while true {
            let rest = max(.zero, end - ContinuousClock.now)
            let milliseconds = Int32(clamping: rest.components.seconds * 1_000 + rest.components.attoseconds / 1_000_000_000_000_000 + 1)
            var descriptor = pollfd(fd: socket, events: Int16(truncatingIfNeeded: events), revents: 0)
            let count = awaitDescriptor(&descriptor, rest == .zero ? 0 : milliseconds)
            if count > 0 { return true }
            if count == 0, rest == .zero { return false }
            if count < 0, errno != EINTR { throw lost() }
        }
    }

    private func lost() -> PostgresError {
        isLost = true
        return PostgresError(kind: .connection, message: Self.sentence(unsafe String(cString: PQerrorMessage(handle))))
    }

    private func error(of result: OpaquePointer) -> PostgresError {
        // PG_DIAG_SQLSTATE and PG_DIAG_MESSAGE_PRIMARY in postgres_ext.h.
        func field(_ code: Unicode.Scalar) -> String? {
            unsafe PQresultErrorField(result, CInt(code.value)).map { unsafe String(cString: $0) }
        }
        guard let state = field("C") else { return lost() }
        return PostgresError(kind: .statement(state: state), message: Self.sentence(field("M") ?? "The server rejected a statement."))
    }

    /// Joins the lines of a libpq message into one line.
    private static func sentence(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }.joined(separator: "; ")
        return line.hasSuffix(".") ? line : line + "."
    }

    private static func withCStrings<Result>(
        _ texts: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers: [UnsafePointer<CChar>?] = unsafe []
        for text in texts { unsafe pointers.append(text.flatMap { unsafe strdup($0) }.map { unsafe UnsafePointer($0) }) }
        defer { unsafe pointers.forEach { unsafe free(UnsafeMutablePointer(mutating: $0)) } }
        return unsafe pointers.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else {
                // An empty array may have no address, and libpq accepts any pointer if there are no parameters.
                var none: UnsafePointer<CChar>?
                return unsafe withUnsafePointer(to: &none) { unsafe body($0) }
            }
            return unsafe body(base)
        }
    }
}

/// Calls poll(2), whose name the class uses for its own method.
private func awaitDescriptor(_ descriptor: inout pollfd, _ milliseconds: CInt) -> CInt {
    unsafe poll(&descriptor, 1, milliseconds)
}
