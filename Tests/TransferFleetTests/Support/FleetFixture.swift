import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// A fleet in a separate database, with the account `studio`.
struct FleetFixture {
    let server: PostgresServer
    let database: String
    let fleet: Fleet
    let store: FleetStore

    var url: String { server.url(database) }

    init(
        account: Account = Account("studio", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/")]),
        server: PostgresServer? = nil, hasLongLeases: Bool = true
    ) async throws {
        self.server = try server ?? PostgresServer.shared.get()
        database = try await self.server.createDatabase()
        let url = self.server.url(database)
        _ = try await Fleet.create(at: url)
        fleet = try Fleet(url, place: .anywhere)
        store = FleetStore(try PostgresURL(url))
        try await fleet.save(account)
        if hasLongLeases { try await lengthenLeases() }
    }

    /// Adds an hour to leases and memberships, so that they don't end during a test on a busy machine.
    private func lengthenLeases() async throws {
        try await query(
            """
            CREATE FUNCTION lengthen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF TG_TABLE_NAME = 'member' THEN
                    NEW.live_until := NEW.live_until + interval '1 hour';
                ELSIF NEW.lease_until > clock_timestamp() THEN
                    NEW.lease_until := NEW.lease_until + interval '1 hour';
                END IF;
                RETURN NEW;
            END $$
            """)
        for table in ["member", "session"] {
            try await query("CREATE TRIGGER lengthen BEFORE INSERT OR UPDATE ON \(table) FOR EACH ROW EXECUTE FUNCTION lengthen()")
        }
    }

    /// Runs a statement on the fleet's tables, for example to read or change data that no interface exposes.
    @discardableResult
    func query(_ statement: String, _ values: [String?] = []) async throws -> [PostgresRow] {
        try await store.unlocked { try $0.query(statement, values) }
    }

    /// Gives the fleet the tables of an earlier version.
    func revertTables(to version: Int) async throws {
        let migrations = [
            2: """
            DROP TABLE session_refusal; ALTER TABLE session DROP part_epoch; DROP INDEX session_completed; ALTER TABLE fleet DROP retention
            """,
            3: "ALTER TABLE fleet DROP rate_limit; ALTER TABLE account DROP rate_limit",
            4: "ALTER TABLE fleet DROP sessions",
            5: "UPDATE fleet SET minimum_member = 1",
            6: "ALTER TABLE session DROP run_requests; ALTER TABLE account DROP retries; DROP INDEX session_removed",
        ]
        for (number, statements) in migrations where number > version {
            try await store.unlocked { try $0.execute(statements) }
        }
        try await query("UPDATE fleet SET version = \(version)")
    }

    // MARK: Sessions

    static func draft(
        _ name: String, account: String = "studio", files: Int = 1, after: SessionID? = nil, acceptsAnyEnd: Bool = false,
        deduplicationKey: String? = nil, notBefore: Date? = nil
    ) -> SessionDraft {
        SessionDraft(
            id: SessionID(), account: account, name: name, notBefore: notBefore,
            dependency: after.map { SessionDependency($0, acceptsAnyEnd: acceptsAnyEnd) }, deduplicationKey: deduplicationKey,
            items: (0..<files).map {
                ItemDraft(source: Data("/in/\(name)-\($0)".utf8), destination: Data("\(name)-\($0)".utf8), size: 1_000)
            })
    }

    @discardableResult
    func add(_ drafts: [SessionDraft], at index: Int? = nil, place: FleetPlace = .anywhere, held: Bool = false) async throws -> [SessionID]
    {
        try await store.locked { try $0.enqueue(drafts, at: index, place: place, isHeld: held) }
    }

    /// Adds sessions with the names `s0`, `s1` and so on.
    @discardableResult
    func add(_ count: Int, account: String = "studio", place: FleetPlace = .anywhere) async throws -> [SessionID] {
        try await add((0..<count).map { Self.draft("s\($0)", account: account) }, place: place)
    }

    func state(of id: SessionID) async throws -> SessionState { try await fleet.status(of: id).state }

    // MARK: Members

    @discardableResult
    func join(_ name: String, slots: Int = 1, labels: [String] = []) async throws -> FleetMemberDescription {
        let member = FleetMemberDescription(name: name, identity: UUID().uuidString, slots: slots, labels: labels)
        try await store.join(member)
        return member
    }

    func finish(_ lease: FleetLease, error: TransferError? = nil) async throws -> Bool {
        try await store.locked { try $0.finish(lease.reference, error: error, statistics: SessionStatistics(files: 1, filesDone: 1)) }
    }

    func giveBack(_ lease: FleetLease, isInterrupted: Bool = false) async throws -> Bool {
        try await store.locked { try $0.giveBack(lease.reference, statistics: nil, isInterrupted: isInterrupted) }
    }

    /// Ends all leases of a member, as if it had sent no heartbeat for 15 s.
    func endLeases(of member: FleetMemberDescription) async throws {
        try await query("UPDATE session SET lease_until = clock_timestamp() - interval '1 ms' WHERE owner = $1", [member.name])
    }

    func requests(_ member: FleetMemberDescription, _ leases: FleetLease...) async throws -> [LeaseRequest?] {
        let response = try await store.renew(leases.map { ($0.reference, SessionStatistics()) }, of: member)
        return leases.map { response.requests[$0.id] }
    }
}
