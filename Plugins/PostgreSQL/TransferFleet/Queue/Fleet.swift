public import SystemPackage
public import TransferCore
public import TransferKit

/// One ordered queue for several hosts, in a PostgreSQL database.
///
/// The fleet holds the sessions, their order, the limits and the accounts. Its members (``FleetMember``) take sessions and transfer them. A `Fleet`
/// value controls the fleet from any process, with the methods of a local queue.
///
/// A session of a fleet consists of files, or of forms with files. A fleet accepts no folders, in-memory data, streams or drafts.
public struct Fleet: ControllableQueue {
    let store: FleetStore
    /// The members on which new sessions may run.
    public let place: FleetPlace
    /// The folders that all members share under the same path. A new session whose local files are all below these folders may run on any
    /// member.
    public let sharedFolders: [FilePath]
    /// The transports that check the remote names of new and changed sessions.
    let transports: [TransportID: any Transport]

    /// Creates a reference to a fleet, without connecting to its database.
    ///
    /// - Parameters:
    ///   - url: The URL of the database: `postgresql://user@host/database`. For the password, use `PGPASSWORD` or `~/.pgpass` (PostgreSQL manual,
    ///     sections 34.15 and 34.16).
    ///   - place: The members on which new sessions may run.
    ///   - sharedFolders: The absolute paths of folders that all members share. Regardless of `place`, a new session whose local files are all
    ///     below these folders may run on any member.
    ///   - transports: The transports that check the remote names of new sessions (``/TransferCore/FileNaming``), like those of a local
    ///     queue. The members transfer with their own transports. The fleet does not check names at endpoints of other transports.
    /// - Throws: ``/TransferKit/QueueError`` with the code `invalidRequest` if the URL is invalid.
    public init(
        _ url: String, place: FleetPlace, sharedFolders: [FilePath] = [], transports: [any Transport] = []
    ) throws(QueueError) {
        store = FleetStore(try PostgresURL(url))
        self.place = place
        self.sharedFolders = sharedFolders.map { $0.lexicallyNormalized() }
        self.transports = Dictionary(transports.map { ($0.id, $0) }) { first, _ in first }
    }

    /// Creates the tables of a fleet in a database, or migrates them to this version.
    ///
    /// - Returns: Whether the database had no fleet before.
    /// - Throws: ``/TransferKit/QueueError``.
    public static func create(at url: String) async throws -> Bool {
        try await setUp(at: url).previousVersion == nil
    }

    /// Like ``create(at:)``.
    ///
    /// - Returns: The versions of the tables before and after the call.
    package static func setUp(at url: String) async throws -> FleetSetup {
        try await FleetStore.create(at: try PostgresURL(url))
    }

    /// Closes the connection to the database. A later call opens a new one.
    public func close() async {
        await store.connection.close()
    }

    /// The ID of the fleet, which is stored in its database.
    package func identity() async throws -> String { try await store.identity() }

    /// Checks that the user of the database has the privileges that a member needs.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `storageUnavailable`.
    package func checkMemberPrivileges() async throws {
        // PostgreSQL checks the privileges of a statement even if the statement changes no row.
        try await store.unlocked { link in
            try link.query("INSERT INTO member(name) SELECT name FROM member WHERE false")
            for table in ["session", "progress", "member"] { try link.query("DELETE FROM \(table) WHERE false") }
            try link.query("UPDATE session SET owner = owner WHERE false")
        }
    }

    // MARK: Members

    /// The members, by name. A member that died stays in the list until ``evict(_:)`` removes it.
    public func members() async throws -> [FleetMemberStatus] { try await store.members() }

    /// Removes a member, for example a host that is gone for good. Once the member's leases have ended, within 15 s, its sessions continue on
    /// other members that may run them.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `noSuchMember`.
    public func evict(_ member: String) async throws { try await store.evict(member) }

    /// The stored events after a revision, followed by new events and the progress of running sessions, for one consumer. Reads the
    /// database once a second, or without pauses while more stored events remain.
    ///
    /// An event of the kind `gap` replaces events that the fleet has removed, that this version can't read, or that were lost when the database
    /// was restored from a backup. The stream throws the errors of the database. After such an error, create a new stream with the last received
    /// revision.
    public func eventStream(since revision: UInt64) -> AsyncThrowingStream<QueueEvent, any Error> {
        let reader = FleetEventReader(store, since: revision)
        return AsyncThrowingStream(unfolding: { try await reader.next() })
    }

    // MARK: Adding

    /// Like `TransferQueue.add(_:at:held:)`.
    @discardableResult
    public func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        try await add(requests, at: index, expecting: nil, held: held)
    }

    /// Like `TransferQueue.add(_:at:expecting:held:)`.
    @discardableResult
    public func add(
        _ requests: [SessionRequest], at index: Int? = nil, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> [SessionID] {
        let drafts = try await SessionDraft.withoutStore(requests)
        for draft in drafts {
            guard let advice = draft.items.lazy.compactMap(\.adviceForFleets).first else { continue }
            throw QueueError(.invalidRequest, "A fleet can't transfer the session \"\(draft.name)\". \(advice)")
        }
        let checked = try await checkNames(of: drafts)
        return try await store.locked { [place, sharedFolders] in
            try $0.enqueue(
                checked, at: index, expecting: orderRevision, place: place, sharedFolders: sharedFolders, isHeld: held)
        }
    }

    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func saveDrafts(_ requests: [SessionRequest]) async throws -> [SessionID] { throw QueueError.draftInFleet }

    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        throw QueueError.unsupportedByFleet("Adding items to a session", "Add another session.")
    }

    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func replaceItems(_ selection: ItemSelection, with items: [TransferItem], in session: SessionReference) async throws {
        throw QueueError.unsupportedByFleet("Replacing items", "Remove the session, and add it again with the other items.")
    }

    // MARK: Operations

    /// Like `TransferQueue.apply(_:to:)`.
    @discardableResult
    public func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        var session = session
        if case .update(let update) = operation, mustCheckNames(after: update) {
            let reference = session
            let id = try await store.unlocked { try FleetTransaction($0).resolve(reference) }
            try await checkNames(of: id, after: update)
            session = .id(id)
        }
        return try await store.locked { [session] in try $0.apply(operation, to: session) }
    }

    /// The time after which an operation on a group continues in a new transaction, so that members can renew their leases and take sessions.
    private static let groupTime = Duration.seconds(1)

    /// Like `TransferQueue.apply(_:to:)`. Changes large groups in several transactions, so after an error, some sessions may already have changed.
    @discardableResult
    public func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        var ids = try await ids(in: group, for: operation)
        if case .move(let destination) = operation { return try await move(ids, to: destination) }
        var isReversed = false
        // In the order, a dependent usually comes after the session on which it depends. If that session were removed first, the dependent
        // could start.
        if case .remove = operation {
            ids.reverse()
            isReversed = true
        }
        var changed: [SessionID] = []
        while !ids.isEmpty {
            let rest = ids
            let result = try await store.locked { try $0.apply(operation, toEach: rest, within: Self.groupTime) }
            changed += result.changed
            ids.removeFirst(result.handled)
        }
        return isReversed ? changed.reversed() : changed
    }

    /// Moves sessions to consecutive indices, at most 1,000 sessions in a transaction.
    ///
    /// - Returns: The given sessions whose position in the order changed.
    private func move(_ ids: [SessionID], to destination: MoveDestination) async throws -> [SessionID] {
        let size = 1_000
        if case .index = destination, ids.count > size {
            throw QueueError.unsupportedByFleet("Moving more than \(size) sessions to an index")
        }
        var destination = destination
        var moved: [SessionID] = []
        for start in stride(from: 0, to: ids.count, by: size) {
            let batch = Array(ids[start..<min(start + size, ids.count)])
            let target = destination
            moved += try await store.locked { try $0.move(batch, to: target) }
            destination = .after(batch[batch.count - 1])
        }
        return moved
    }

    // MARK: The queue

    /// Lets members take sessions.
    public func start() async throws {
        try await store.locked { transaction in
            try transaction.link.query("UPDATE fleet SET is_stopped = false")
            transaction.record(.queueStarted)
        }
    }

    /// Prevents members from taking sessions. With ``/TransferKit/StopMode/interrupt``, interrupts running sessions; otherwise, they
    /// finish.
    ///
    /// - Parameters:
    ///   - mode: Whether running sessions finish or are interrupted.
    ///   - deadline: Must be nil.
    /// - Throws: ``/TransferKit/QueueError``, including the code `invalidRequest` if there is a deadline.
    public func stop(_ mode: StopMode, deadline: Duration?) async throws {
        guard deadline == nil else { throw QueueError.unsupportedByFleet("A deadline") }
        try await store.locked { transaction in
            try transaction.link.query("UPDATE fleet SET is_stopped = true")
            if mode == .interrupt {
                let owners = try transaction.link.query(
                    "UPDATE session SET state = 'waiting', lane = least(lane, 3) WHERE state = 'running' RETURNING owner")
                transaction.notify(try owners.compactMap { try $0.optional(0) })
            }
            transaction.record(.queueStopped)
        }
    }

    /// Stops the fleet like ``stop(_:deadline:)``, and returns without waiting for running sessions. The result depends only on `mode`.
    ///
    /// In the mode `interrupt`, members stop their sessions within seconds. A member that can't reach the database stops them before their leases
    /// end.
    @discardableResult
    public func stopAndWait(_ mode: StopMode, deadline: Duration?) async throws -> StopResult {
        try await stop(mode, deadline: deadline)
        return mode == .interrupt ? .interrupted : .drained
    }

    /// Like `TransferQueue.setMaxConcurrentSessions(_:account:)`.
    public func setMaxConcurrentSessions(_ limit: Int?, account: String?) async throws {
        guard limit.map({ $0 >= 1 }) ?? true else { throw QueueError(.invalidRequest, "A limit must be at least 1.") }
        guard let account else {
            return try await store.locked { transaction in
                try transaction.link.query("UPDATE fleet SET max_sessions = $1", [limit.map { "\($0)" }])
                transaction.record(.limitsChanged)
            }
        }
        try await change(account) { $0.maxConcurrentSessions = limit }
    }

    /// Like `TransferQueue.setRateLimit(_:account:)`. The members that use the limit share it evenly. Each member gets its new share within
    /// 3 s.
    public func setRateLimit(_ bytesPerSecond: Int64?, account: String?) async throws {
        guard bytesPerSecond.map({ $0 >= 1 }) ?? true else { throw QueueError(.invalidRequest, "A limit must be at least 1.") }
        guard let account else {
            return try await store.locked { transaction in
                try transaction.link.query("UPDATE fleet SET rate_limit = $1", [bytesPerSecond.map { "\($0)" }])
                transaction.record(.limitsChanged)
            }
        }
        try await change(account) { $0.rateLimit = bytesPerSecond }
    }

    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func setTimetable(_ timetable: BandwidthTimetable?, account: String?) async throws {
        throw QueueError.timetableInFleet
    }

    /// Like `TransferQueue.setRetention(_:)`. A nil retention keeps all sessions. The database's clock determines the age of a session.
    public func setRetention(_ retention: Retention?) async throws {
        try retention?.validate()
        try await store.locked { try $0.setRetention(retention) }
        while try await store.locked({ try $0.removeExpired() }) {}
    }

    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func setDiskFloor(_ bytes: Int64?) async throws { throw QueueError.unsupportedByFleet("A minimum of free space") }
    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func setNetworkCondition(_ condition: NetworkCondition) async throws {
        throw QueueError.unsupportedByFleet("A network condition")
    }
    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func storeHealth() async throws -> StoreHealth { throw QueueError.unsupportedByFleet("A check of the storage") }
    /// Returns 0, because a fleet has no quarantine.
    public func quarantinedCount() async throws -> Int { 0 }
    /// Returns an empty array, because a fleet has no quarantine.
    public func quarantined() async throws -> [QuarantinedSession] { [] }
    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func restoreQuarantined(_ number: Int64) async throws { throw QueueError.unsupportedByFleet("A quarantine") }
    /// Not possible in a fleet: throws ``/TransferKit/QueueError`` with the code `invalidRequest`.
    public func dropQuarantined(_ number: Int64) async throws { throw QueueError.unsupportedByFleet("A quarantine") }
}

extension QueueError {
    static var draftInFleet: QueueError {
        unsupportedByFleet("A draft", "Add the session with --hold, and release it later.")
    }

    static var timetableInFleet: QueueError {
        unsupportedByFleet("A bandwidth timetable", "Set the rate with --rate, for example from cron.")
    }

    static func noAccount(_ name: String) -> QueueError { QueueError(.noSuchAccount, "There is no account named \"\(name)\".") }
}

extension ItemDraft {
    /// How to replace an item that a fleet rejects; nil if a fleet accepts the item. The members must be able to read each item themselves.
    fileprivate var adviceForFleets: String? {
        switch kind {
        case .file, .download: nil
        case .form where !hasData: nil
        case .folder: "Name the files of the folder, because its content can differ between the members."
        case .remoteFolder: "Name the files of the remote folder."
        case .blob, .form: "Write the data to a file that the members can read, and name this file."
        case .stream: "Write the stream to a file that the members can read, and name this file. Or use a local queue."
        }
    }
}
