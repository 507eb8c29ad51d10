public import Foundation
package import TransferCore
public import TransferKit

/// The description of a member that joins a fleet.
package struct FleetMemberDescription: Sendable {
    /// The version of this member. A fleet rejects members whose version is older than its `minimum_member`.
    package static let version = 2

    package var name: String
    /// A random ID that belongs to the member's storage folder. One process at a time owns the folder, so a second process with this identity
    /// can only be the successor of a process that has ended.
    package var identity: String
    package var slots: Int
    package var labels: [String]
    package var process: Int32

    package init(name: String, identity: String, slots: Int, labels: [String] = [], process: Int32 = 0) {
        self.name = name
        self.identity = identity
        self.slots = slots
        self.labels = labels
        self.process = process
    }
}

/// A snapshot of a member of a fleet.
public struct FleetMemberStatus: Hashable, Sendable, Codable {
    /// The member's name.
    public var name: String
    /// Whether the member has renewed its membership in the last 15 s.
    public var isLive: Bool
    /// The maximum number of sessions that the member runs.
    public var slots: Int
    /// The number of sessions that the member has taken.
    public var sessions: Int
    /// The member's labels; see ``FleetPlace/label(_:)``.
    public var labels: [String]
    /// When the member joined.
    public var joinedAt: Date?
    /// The accounts that the member can't use, for example because it lacks their credentials.
    public var refusedAccounts: [String]
}

extension FleetStore {
    /// Adds a member. If an earlier process had the same identity, replaces that process, and ends its leases. Also replaces a member with
    /// the same name that is no longer live.
    ///
    /// - Throws: ``QueueError`` with the code `storageInUse` if another live member has the name, or `storageTooNew` if the fleet requires
    ///   a newer version of its members.
    package func join(_ member: FleetMemberDescription) async throws {
        try await locked { transaction in
            let row = try transaction.link.query(
                "SELECT identity = $2::uuid, live_until > clock_timestamp() FROM member WHERE name = $1", [member.name, member.identity]
            ).first
            if let row, try !row.flag(0), try row.flag(1) {
                throw QueueError(
                    .storageInUse,
                    "The fleet already has a live member named \"\(member.name)\". Choose another name with --name, or wait until 15 s after that member has stopped."
                )
            }
            let minimum = try transaction.link.query("SELECT minimum_member FROM fleet").first?.integer(0) ?? 0
            guard FleetMemberDescription.version >= minimum else {
                throw QueueError(.storageTooNew, "The fleet requires a newer version of transferq. Install the newer version on this host.")
            }
            // The earlier process has ended, so it no longer transfers files.
            if let row, try row.flag(0) { try transaction.reclaim(allOf: member.name) }
            try transaction.link.query(
                """
                INSERT INTO member(name, identity, slots, labels, version, process, live_until)
                VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + \(FleetLease.interval))
                ON CONFLICT (name) DO UPDATE SET identity = excluded.identity, slots = excluded.slots, labels = excluded.labels,
                    version = excluded.version, process = excluded.process, joined_at = clock_timestamp(), live_until = excluded.live_until
                """,
                [
                    member.name, member.identity, "\(member.slots)", PostgresValue.array(member.labels),
                    "\(FleetMemberDescription.version)", "\(member.process)",
                ])
            for table in ["refusal", "session_refusal"] {
                try transaction.link.query("DELETE FROM \(table) WHERE member = $1", [member.name])
            }
        }
    }

    /// Takes at most `limit` sessions that a member may run; see ``FleetTransaction/take(for:identity:limit:)``. Waits for the fleet's lock
    /// only if there is something to do, so idle members do not delay others.
    package func take(for member: FleetMemberDescription, limit: Int = .max) async throws -> [FleetLease] {
        guard try await unlocked({ try FleetTransaction($0).mustTake(for: member.name, identity: member.identity) }) else { return [] }
        return try await locked { try $0.take(for: member.name, identity: member.identity, limit: limit) }
    }

    /// Performs a heartbeat of a member: renews its leases, stores the statistics of their sessions, and divides the rate limits again. One
    /// statement renews all leases.
    ///
    /// - Parameter leases: The leases, with the new statistics of each session; nil for no change.
    /// - Throws: ``QueueError`` with the code `evicted` if the member no longer belongs to the fleet.
    package func renew(_ leases: [(lease: LeaseReference, statistics: SessionStatistics?)], of member: FleetMemberDescription) async throws
        -> HeartbeatResponse
    {
        let arrays = try [
            PostgresValue.array(leases.map { "\($0.lease.id)" }), PostgresValue.array(leases.map { "\($0.lease.epoch)" }),
            PostgresValue.array(leases.map { try $0.statistics.map { try PostgresValue.json($0) } }),
        ]
        return try await unlocked { link in
            let rows = try link.query(
                """
                UPDATE member SET live_until = clock_timestamp() + \(FleetLease.interval), slots = $3
                WHERE name = $1 AND identity = $2 RETURNING 1
                """, [member.name, member.identity, "\(member.slots)"])
            guard !rows.isEmpty else { throw QueueError.evicted(member.name) }
            var response = HeartbeatResponse()
            let renewed = try link.query(
                """
                WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS given(id, epoch, statistics)),
                    mine AS (SELECT id FROM session WHERE id IN (SELECT id FROM given) ORDER BY id FOR NO KEY UPDATE)
                UPDATE session SET lease_until = clock_timestamp() + \(FleetLease.interval),
                    statistics = coalesce(given.statistics, session.statistics)
                FROM given JOIN mine USING (id)
                WHERE session.id = given.id AND session.lease_epoch = given.epoch AND session.owner = $4
                    AND session.lease_until > clock_timestamp()
                RETURNING session.id, session.state, session.run_requests, session.account,
                    (SELECT retries FROM account WHERE account.name = session.account)
                """, arrays + [member.name])
            for row in renewed {
                let request: LeaseRequest =
                    switch try row.text(1) {
                    case "running": .run
                    case "paused": .pause
                    default: .giveBack
                    }
                let id = try row.session(0)
                response.requests[id] = request
                response.runRequests[id] = try row.integer(2)
                response.retries[try row.text(3)] = try row.integer(4)
            }
            if !renewed.isEmpty { response.rates = try link.rateShares(of: member.name) }
            return response
        }
    }

    /// The maximum length, in bytes, of the name in a ``FileEvent/storageKey``. A longer name is hashed, because the
    /// maximum size of an index key is about 2,700 bytes.
    private static var maximumKeyLength: Int { 2_000 }

    /// Stores the progress of files. For each session, stores all of the given progress or none. The rows of the sessions stay locked until
    /// the progress is stored, so no other member can take a session and miss the progress.
    ///
    /// - Returns: The sessions whose lease is still valid.
    package func record(_ progress: [(lease: LeaseReference, progress: FileProgress)], of member: String) async throws -> Set<SessionID> {
        var latest: [String: [String?]] = [:]
        for (lease, progress) in progress {
            guard let key = progress.event.storageKey else { continue }
            latest["\(lease.id) \(progress.position) \(key.name)"] = [
                "\(lease.id)", "\(lease.epoch)", "\(progress.position)", key.name, "\(key.generation)",
                try PostgresValue.json(progress.event),
            ]
        }
        let rows = Array(latest.values)
        let arrays = (0..<6).map { column in PostgresValue.array(rows.map { $0[column] }) }
        return try await unlocked { link in
            let valid = try link.query(
                """
                WITH given AS (
                        SELECT session, epoch, position, generation, event, CASE WHEN octet_length(part) <= \(Self.maximumKeyLength) THEN part
                            ELSE 'checkpoint ' || encode(sha256(convert_to(part, 'UTF8')), 'hex') END AS part
                        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
                            AS given(session, epoch, position, part, generation, event)),
                    valid AS (
                        SELECT id FROM session
                        WHERE owner = $7 AND lease_until > clock_timestamp()
                            AND (id, lease_epoch) IN (SELECT session, epoch FROM given)
                        ORDER BY id FOR SHARE),
                    written AS (
                        INSERT INTO progress(session, position, part, generation, event)
                        SELECT session, position, part, generation, event FROM given JOIN valid ON valid.id = given.session
                        ON CONFLICT (session, position, part) DO UPDATE SET generation = excluded.generation, event = excluded.event)
                SELECT id FROM valid
                """, arrays + [member])
            return Set(try valid.map { try $0.session(0) })
        }
    }

    /// Records that a member can't use an account. Other members continue to use the account.
    package func refuse(_ account: String, error: TransferError, by member: String) async throws {
        try await locked { try $0.refuse(account, error: error, by: member) }
    }

    /// Removes a member that has given its sessions back.
    package func leave(_ member: FleetMemberDescription) async throws {
        try await locked { transaction in
            try transaction.link.query("DELETE FROM member WHERE name = $1 AND identity = $2", [member.name, member.identity])
            transaction.notify()
        }
    }

    /// Removes a member, which can then neither take sessions nor renew its leases. Sessions that may run elsewhere continue there once their
    /// leases have ended, because the member may still be sending until then.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchMember`.
    package func evict(_ name: String) async throws {
        try await locked { transaction in
            guard try transaction.link.query("DELETE FROM member WHERE name = $1 RETURNING 1", [name]).first != nil else {
                throw QueueError(.noSuchMember, "The fleet has no member named \"\(name)\".")
            }
            transaction.notify([name])
            // If only this member could run a session, that session no longer displaces others.
            transaction.notify()
        }
    }

    package func members() async throws -> [FleetMemberStatus] {
        try await unlocked { link in
            try link.query(
                """
                SELECT name, live_until > clock_timestamp(), slots, (SELECT count(*) FROM session WHERE owner = member.name),
                    array_to_json(labels), extract(epoch FROM joined_at),
                    (SELECT coalesce(json_agg(account ORDER BY account), '[]') FROM refusal WHERE refusal.member = member.name)
                FROM member ORDER BY name
                """
            ).map { row in
                FleetMemberStatus(
                    name: try row.text(0), isLive: try row.flag(1), slots: Int(clamping: try row.integer(2)),
                    sessions: Int(clamping: try row.integer(3)), labels: try row.json([String].self, 4), joinedAt: try row.date(5),
                    refusedAccounts: try row.json([String].self, 6))
            }
        }
    }
}

extension QueueError.Code {
    /// The fleet has no member with that name.
    public static let noSuchMember = Self(rawValue: "noSuchMember")
}
