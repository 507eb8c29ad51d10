import Foundation
public import SystemPackage
public import TransferKit

/// A queue owned by another process: `transferq agent`, `transferq run`, or an app with a ``ControlServer``.
///
/// Calls use the socket in the queue's storage folder. Each call opens a new connection, so calls also work after the owner restarts.
/// The owner and this process must run as the same user. Relative paths refer to the queue's base folder (``/TransferKit/Storage``) or, if
/// the queue has no base folder, to this process's working directory. The owner reads the files and credentials.
///
/// Call the methods on any executor. Cancelling a call does not undo its request: the owner may still perform it.
public struct RemoteTransferQueue: ControllableQueue {
    /// The storage folder of the queue.
    public let folder: FilePath

    /// The time after which a call fails if the owner sends nothing. A busy owner sends a heartbeat every two seconds.
    public let timeout: Duration

    /// Creates a reference to a queue, without connecting to its owner.
    ///
    /// - Parameters:
    ///   - folder: The storage folder of the queue.
    ///   - timeout: The time after which a call fails if the owner sends nothing.
    public init(folder: some LocalPathConvertible, timeout: Duration = .seconds(10)) {
        self.folder = folder.filePath
        self.timeout = timeout
    }

    /// Returns a description of the process that owns the queue.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `ownerUnreachable` if there is no owner, or `ownerSilent` if the owner does not respond in
    ///   time.
    public func owner() async throws -> QueueOwner { try await call(.owner) }

    /// Stops the queue's owner: an agent, a member of a fleet, or an app whose ``ControlServer`` handles stop requests. Returns after the owner
    /// has interrupted running sessions, saved their progress and released the storage folder.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `invalidTransition` if the owner rejects stop requests.
    public func stopAgent() async throws {
        do {
            try await perform(.end)
        } catch let error as QueueError where error.code == .ownerLost {
            // The owner released the folder and exited before it could respond.
        }
    }

    // MARK: Accounts

    /// Like `TransferQueue.accounts()`.
    public func accounts() async throws -> [AccountStatus] { try await list(.accounts) }
    /// Like `TransferQueue.account(_:)`.
    public func account(_ name: String) async throws -> AccountStatus? {
        let found: [AccountStatus] = try await list(.account(name: name))
        return found.first
    }
    /// Like `TransferQueue.save(_:)`. The account can't contain a secret in memory, because the owner reads the credentials.
    public func save(_ account: Account) async throws {
        try checkSecrets(of: account)
        try await perform(.save(account))
    }
    /// Like ``/TransferKit/ControllableQueue/save(_:replacing:)``. The account can't contain a secret in memory, because the owner reads the
    /// credentials.
    public func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try checkSecrets(of: account)
        return try await call(.replace(previous, with: account))
    }
    /// Rejects secrets in this process's memory, because the owner can't read them. Accepts references without a secret, because they can
    /// refer to secrets in the owner's memory.
    private func checkSecrets(of account: Account) throws {
        for reference in account.endpoints.flatMap(\.credentials) {
            guard case .memory(let memory) = reference.source, memory.secret != nil else { continue }
            throw QueueError(
                .invalidAccount,
                "A secret of the account \"\(account.name)\" is in this process's memory, which the queue's owner can't read. Store the secret in a file."
            )
        }
    }
    /// Like `TransferQueue.deleteAccount(_:cascades:)`.
    public func deleteAccount(_ name: String, cascades: Bool = false) async throws {
        try await perform(.deleteAccount(name: name, cascades: cascades))
    }
    /// Like `TransferQueue.unblockAccount(_:)`.
    public func unblockAccount(_ name: String) async throws { try await perform(.unblockAccount(name: name)) }
    /// Like `TransferQueue.retryEndpoints(of:)`.
    public func retryEndpoints(of account: String) async throws { try await perform(.retryEndpoints(account: account)) }

    // MARK: The queue

    /// Like `TransferQueue.status()`.
    public func status() async throws -> QueueStatus { try await call(.status) }
    /// Like `TransferQueue.remainingSessions()`.
    public func remainingSessions() async throws -> Int { try await call(.remainingUploads) }
    /// Like `TransferQueue.statistics()`.
    public func statistics() async throws -> QueueStatistics { try await call(.statistics) }
    /// Like `TransferQueue.forecast()`.
    public func forecast() async throws -> [SessionForecast] { try await list(.forecast) }
    /// Like `TransferQueue.storeHealth()`.
    public func storeHealth() async throws -> StoreHealth { try await call(.storeHealth) }
    /// Like `TransferQueue.quarantinedCount()`.
    public func quarantinedCount() async throws -> Int { try await call(.quarantinedCount) }
    /// Like `TransferQueue.quarantined()`.
    public func quarantined() async throws -> [QuarantinedSession] { try await list(.quarantined) }
    /// Like `TransferQueue.restoreQuarantined(_:)`.
    public func restoreQuarantined(_ number: Int64) async throws { try await perform(.restoreQuarantined(number)) }
    /// Like `TransferQueue.dropQuarantined(_:)`.
    public func dropQuarantined(_ number: Int64) async throws { try await perform(.dropQuarantined(number)) }
    /// Like `TransferQueue.setMaxConcurrentSessions(_:account:)`.
    public func setMaxConcurrentSessions(_ limit: Int?, account: String? = nil) async throws {
        try await perform(.setMaxConcurrentSessions(limit, account: account))
    }
    /// Like `TransferQueue.setRateLimit(_:account:)`.
    public func setRateLimit(_ bytesPerSecond: Int64?, account: String? = nil) async throws {
        try await perform(.setRateLimit(bytesPerSecond, account: account))
    }
    /// Like `TransferQueue.setTimetable(_:account:)`.
    public func setTimetable(_ timetable: BandwidthTimetable?, account: String? = nil) async throws {
        try await perform(.setTimetable(timetable, account: account))
    }
    /// Like `TransferQueue.setRetention(_:)`.
    public func setRetention(_ retention: Retention?) async throws { try await perform(.setRetention(retention)) }
    /// Like `TransferQueue.setDiskFloor(_:)`.
    public func setDiskFloor(_ bytes: Int64?) async throws { try await perform(.setDiskFloor(bytes)) }
    /// Like `TransferQueue.setNetworkCondition(_:)`.
    public func setNetworkCondition(_ condition: NetworkCondition) async throws {
        try await perform(.setNetworkCondition(condition))
    }
    /// Like `TransferQueue.start()`.
    public func start() async throws { try await perform(.start) }
    /// Like `TransferQueue.stop(_:deadline:)`.
    public func stop(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws {
        try await perform(.stop(mode, deadline: deadline))
    }
    /// Like `TransferQueue.stopAndWait(_:deadline:)`.
    @discardableResult
    public func stopAndWait(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws -> StopResult {
        try await call(.stopAndWait(mode, deadline: deadline))
    }

    // MARK: Sessions

    /// Like `TransferQueue.sessions(_:)`. Reads long lists in pages; the order can change between two pages.
    public func sessions(_ range: Range<Int> = 0..<Int.max) async throws -> [SessionStatus] {
        let pageSize = 4_096
        var found: [SessionStatus] = []
        // Like the queue, ignore negative indices.
        var start = max(0, range.lowerBound)
        while start < range.upperBound {
            // `start + pageSize` could overflow.
            let end = range.upperBound - start > pageSize ? start + pageSize : range.upperBound
            let page = try await sessions(.sessions(from: start, to: end))
            found += page
            guard page.count == end - start else { break }
            start = end
        }
        return found
    }
    /// Like `TransferQueue.sessions(in:)`.
    public func sessions(in group: SessionGroup) async throws -> [SessionStatus] {
        guard case .sessions(let ids) = group else { return try await sessions(.sessionsOfGroup(group)) }
        var staging = RequestStaging()
        staging.stage(ids)
        return try await sessions(.stagedSessions, after: staging.parts)
    }
    /// Like `TransferQueue.sessionIDs()`.
    public func sessionIDs() async throws -> [SessionID] { try await list(.sessionIDs) }
    /// Like ``/TransferKit/ControllableQueue/sessionIDs(beginningWith:limit:)``.
    public func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID] {
        try await list(.findSessionIDs(prefix: prefix, limit: limit))
    }
    /// Like `TransferQueue.status(of:)`.
    public func status(of id: SessionID) async throws -> SessionStatus { try await call(.session(id)) }
    /// Like `TransferQueue.items(of:from:limit:)`.
    public func items(of id: SessionID, from position: Int64 = 0, limit: Int = 1_000) async throws -> [ItemStatus] {
        let records: [ItemStatusRecord] = try await list(.items(of: id, from: position, limit: limit))
        return try records.map { try $0.status }
    }

    /// Like `TransferQueue.enqueue(_:at:held:)`, without handles. Items can't be streams.
    @discardableResult
    public func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        try await add(requests, at: index, expecting: nil, held: held)
    }

    /// Like ``/TransferKit/ControllableQueue/add(_:at:expecting:held:)``. Items can't be streams.
    @discardableResult
    public func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, held: Bool
    ) async throws -> [SessionID] {
        var staging = RequestStaging()
        try staging.stage(requests)
        let request: ControlRequest =
            if let orderRevision { .addInOrder(orderRevision, at: index, held: held) } else { .add(at: index, held: held) }
        return try await list(request, after: staging.parts)
    }

    /// Like `TransferQueue.enqueue(_:at:held:)`, without a handle: the session continues after this process exits. Items can't be streams.
    @discardableResult
    public func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> SessionID {
        try await add([request], at: index, held: held).first ?? request.id
    }

    /// Like `TransferQueue.saveDrafts(_:)`. Items can't be streams.
    @discardableResult
    public func saveDrafts(_ requests: [SessionRequest]) async throws -> [SessionID] {
        var staging = RequestStaging()
        try staging.stage(requests)
        return try await list(.saveDrafts, after: staging.parts)
    }

    /// Like `TransferQueue.save(draft:)`, without a handle.
    @discardableResult
    public func save(draft request: SessionRequest) async throws -> SessionID {
        try await saveDrafts([request]).first ?? request.id
    }

    /// Like `TransferQueue.addItems(_:to:)`. Items can't be streams.
    public func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        var staging = RequestStaging()
        try staging.stage(items)
        try await perform(.addItems(to: session), after: staging.parts)
    }

    /// Like ``/TransferKit/ControllableQueue/replaceItems(_:with:in:)``. Items can't be streams.
    public func replaceItems(_ selection: ItemSelection, with items: [TransferItem], in session: SessionReference) async throws {
        var staging = RequestStaging()
        try staging.stage(items)
        try await perform(.replaceItems(selection, in: session), after: staging.parts)
    }

    /// Applies an operation to one session, like the corresponding method of `TransferQueue`.
    @discardableResult
    public func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        let states: [SessionState] = try await list(.apply(operation, to: session))
        return states.first
    }

    /// Applies an operation to a group, like the corresponding method of `TransferQueue`.
    @discardableResult
    public func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        guard case .sessions(let ids) = group else { return try await list(.applyToGroup(operation, to: group)) }
        var staging = RequestStaging()
        staging.stage(ids)
        return try await list(.applyToStaged(operation), after: staging.parts)
    }
}
