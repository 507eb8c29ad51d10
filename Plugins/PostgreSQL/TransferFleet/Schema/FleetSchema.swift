import TransferKit

/// The tables of a fleet, in the schema `transferq` of its database.
enum FleetSchema {
    /// The version of the tables that this program uses. ``migrate(_:)`` migrates older tables. ``check(_:)`` rejects tables of another version.
    static let version: Int64 = 6
    /// The statement that takes the lock of the fleet, a transaction-level advisory lock (PostgreSQL manual, section 13.3.5). Only a
    /// transaction that holds this lock changes the order, or lets members take sessions and give them back.
    static let lock = "SELECT pg_advisory_xact_lock(1953198193, 1)"
    /// The channel of notifications. The payload is the name of a member that must renew its leases, or empty if a session may start. PostgreSQL
    /// delivers each notification to all members.
    static let channel = "transferq_fleet"

    /// Creates the tables, or migrates them to ``version``.
    ///
    /// - Returns: The schema's version before the call; nil if there was no fleet.
    static func migrate(_ link: PostgresLink) throws -> Int64? {
        // Creating an index on millions of sessions can take longer than the time limit of other statements.
        try link.execute("SET LOCAL statement_timeout = 0")
        link.statementTimeout = .seconds(86_400)
        try link.query(lock)
        let before = try currentVersion(link)
        if let before, before > version { throw tooNew(before) }
        if before == nil { try link.execute("CREATE SCHEMA IF NOT EXISTS transferq") }
        try link.execute("SET search_path TO transferq")
        // Never change a released migration. Add a new one for each change.
        let migrations = [
            FleetTables.migration1, FleetTables.migration2, FleetTables.migration3, FleetTables.migration4, FleetTables.migration5,
            FleetTables.migration6,
        ]
        for migration in migrations.dropFirst(Int(clamping: before ?? 0)) { try link.execute(migration) }
        // Count the sessions again, even if no migration was needed. A process of an earlier program version that was still connected after
        // an earlier migration may have added or removed sessions without updating their number.
        try link.query("UPDATE fleet SET version = $1, sessions = (SELECT count(*) FROM session WHERE NOT is_removed)", ["\(version)"])
        return before
    }

    /// Checks a new connection, and selects the schema. The server must accept changes, the connection must not go through a pooler, and
    /// the tables must have the version ``version``.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable` or `storageTooNew`.
    static func check(_ link: PostgresLink) throws {
        try checkServer(link)
        guard let found = try currentVersion(link) else {
            throw QueueError(.storageUnavailable, "The database has no fleet. Create it with: transferq --fleet URL fleet init")
        }
        guard found <= version else { throw tooNew(found) }
        guard found == version else {
            throw QueueError(
                .storageUnavailable,
                "The fleet's tables have the older version \(found). Migrate them with: transferq --fleet URL fleet init")
        }
        try link.execute("SET search_path TO transferq")
    }

    /// Checks that the server accepts changes, and that the connection does not go through a pooler.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`.
    static func checkServer(_ link: PostgresLink) throws {
        let row = try link.query("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', pg_backend_pid()").first
        guard let row else { throw PostgresError.unreadable("the state of the server") }
        guard try !row.flag(0) else {
            throw QueueError(
                .storageUnavailable,
                "The database is a read-only standby. Use the primary server, for example with the option target_session_attrs=read-write.")
        }
        guard link.isServedBy(process: try row.integer(1)) else {
            throw QueueError(
                .storageUnavailable,
                "The connection goes through a pooler such as PgBouncer, which loses notifications. Connect to PostgreSQL directly.")
        }
    }

    /// Checks a connection that will receive notifications, and subscribes to the fleet's channel.
    static func listen(_ link: PostgresLink) throws {
        try check(link)
        try link.execute("LISTEN \(channel)")
    }

    private static func currentVersion(_ link: PostgresLink) throws -> Int64? {
        guard try link.query("SELECT to_regclass('transferq.fleet') IS NOT NULL").first?.flag(0) == true else { return nil }
        return try link.query("SELECT version FROM transferq.fleet").first?.integer(0)
    }

    private static func tooNew(_ version: Int64) -> QueueError {
        QueueError(
            .storageTooNew,
            "A newer version of transferq has migrated the fleet's tables (version \(version); this one reads \(Self.version)). Install the newer version on this host."
        )
    }
}
