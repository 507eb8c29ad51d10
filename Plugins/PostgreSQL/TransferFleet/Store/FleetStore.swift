package import TransferKit

/// The versions of a fleet's tables before and after their creation or migration.
package struct FleetSetup: Sendable {
    /// The version before the call; nil if there was no fleet.
    package var previousVersion: Int64?
    /// The version after the call.
    package var version: Int64
}

/// The tables of a fleet. Each method uses one transaction, except ``take(for:limit:)``, which uses a second one if there is something to
/// do.
package struct FleetStore: Sendable {
    package let connection: PostgresConnection

    package init(_ url: PostgresURL) {
        connection = PostgresConnection(url, check: FleetSchema.check)
    }

    /// Creates the tables of a fleet, or migrates them to this version.
    ///
    /// - Throws: ``QueueError``.
    package static func create(at url: PostgresURL) async throws -> FleetSetup {
        let connection = PostgresConnection(url, check: FleetSchema.checkServer)
        let before = try await connection.transaction { link in try FleetSchema.migrate(link) }
        await connection.close()
        return FleetSetup(previousVersion: before, version: FleetSchema.version)
    }

    /// Runs a transaction that holds the fleet's lock, so no other transaction changes the order, takes sessions or gives sessions back at the
    /// same time. Heartbeats renew leases without this lock.
    package func locked<Value: Sendable>(_ body: @Sendable (FleetTransaction) throws -> Value) async throws -> Value {
        try await connection.transaction { link in
            let transaction = FleetTransaction(link)
            try link.query(FleetSchema.lock)
            let value = try body(transaction)
            try transaction.finish()
            return value
        }
    }

    /// Runs a transaction without the fleet's lock.
    package func unlocked<Value: Sendable>(_ body: @Sendable (PostgresLink) throws -> Value) async throws -> Value {
        try await connection.transaction(body)
    }
}

/// A transaction that holds the fleet's lock, or that only reads. Collects the events of its changes.
package final class FleetTransaction {
    /// The number of events that the table `event` keeps.
    private static let maximumEvents = 100_000

    package let link: PostgresLink
    private var events: [QueueEvent.Kind] = []
    /// The number of sessions that this transaction adds to the order, minus the number that it removes.
    private var addedSessions = 0
    /// Whether to call ``deleteRemoved()`` at the end of this transaction.
    var deletesRemoved = false
    /// The number of rows with progress that this transaction may still delete.
    var deletableRows = FleetTransaction.maximumDeletedRows
    /// The payloads of the notifications to send after the transaction; see ``FleetSchema/channel``.
    private var notifications: Set<String> = []

    package init(_ link: PostgresLink) {
        self.link = link
    }

    /// Adds an event, which ``finish()`` stores.
    ///
    /// - Parameter mayLetSessionsStart: Whether to wake the members with a free slot after the transaction, because a session may start.
    package func record(_ event: QueueEvent.Kind, mayLetSessionsStart: Bool = true) {
        events.append(event)
        if mayLetSessionsStart { notify() }
    }

    /// Adds the events for a change of the order, and increments the order's revision.
    package func recordOrder(_ event: QueueEvent.Kind) throws {
        let row = try link.query("UPDATE fleet SET order_revision = order_revision + 1 RETURNING order_revision").first
        let revision = UInt64(clamping: try row?.integer(0) ?? 0)
        record(.willChangeQueue(orderRevision: revision))
        record(event)
        record(.didChangeQueue(orderRevision: revision))
    }

    /// Adds a number to the stored number of sessions in the order, at the end of the transaction.
    ///
    /// - Parameter count: The number of added sessions; negative if sessions were removed.
    package func adjustSessionCount(by count: Int) {
        addedSessions += count
    }

    /// The number of sessions in the order. Reads the stored number, because counting millions of rows would take seconds.
    package func sessionCount() throws -> Int {
        let stored = try link.query("SELECT sessions FROM fleet").first?.integer(0) ?? 0
        // The stored number can be wrong, for example after a manual change of the table.
        return Int(min(max(0, stored.addingSaturated(Int64(addedSessions))), 1 << 40))
    }

    /// Wakes the members with a free slot after the transaction, because a session may start.
    package func notify() {
        notifications.insert("")
    }

    /// Makes members renew their leases after the transaction, because the fleet has a request for one of their sessions.
    package func notify(_ members: some Sequence<String>) {
        notifications.formUnion(members)
    }

    /// Returns a mark that is higher than all earlier ones. Among sessions with the start priority *now* or *next* (the column `lane`), those with
    /// higher marks start first.
    package func nextMark() throws -> String {
        guard let row = try link.query("UPDATE fleet SET mark = mark + 1 RETURNING mark").first else {
            throw PostgresError.unreadable("the table fleet is empty")
        }
        return try row.text(0)
    }

    /// Deletes removed sessions, writes the events with consecutive revisions, and notifies the members.
    package func finish() throws {
        if deletesRemoved { try deleteRemoved() }
        if addedSessions != 0 { try link.query("UPDATE fleet SET sessions = sessions + $1", ["\(addedSessions)"]) }
        if !events.isEmpty {
            let kinds = try events.map { try PostgresValue.json($0) }
            let row = try link.query("UPDATE fleet SET revision = revision + $1 RETURNING revision", ["\(kinds.count)"]).first
            guard let last = try row?.integer(0) else { throw PostgresError.unreadable("the table fleet is empty") }
            try link.query(
                "INSERT INTO event(revision, kind) SELECT $1::bigint + n, kind FROM unnest($2::text[]) WITH ORDINALITY AS e(kind, n)",
                ["\(last.subtractingSaturated(Int64(kinds.count)))", PostgresValue.array(kinds)])
            try link.query("DELETE FROM event WHERE revision <= $1", ["\(last.subtractingSaturated(Int64(Self.maximumEvents)))"])
        }
        if !notifications.isEmpty {
            try link.query("SELECT pg_notify($1, unnest($2::text[]))", [FleetSchema.channel, PostgresValue.array(Array(notifications))])
        }
    }
}
