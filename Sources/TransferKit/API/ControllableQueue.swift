/// The common interface of all queues: ``TransferQueue`` for a queue in this process, `RemoteTransferQueue` (module `TransferControl`) for
/// a queue in another process, and `Fleet` (module `TransferFleet`) for a queue of several hosts.
///
/// Extensions of the protocol have a method for each ``SessionOperation`` on one session. For groups, use ``apply(_:to:)-(_,SessionGroup)``. For
/// the details, units and errors of the methods below, see the method with the same name in ``TransferQueue``. If another process owns the
/// queue, a method can also throw ``QueueError`` with the code `ownerUnreachable` or `ownerLost`.
public protocol ControllableQueue: Sendable {
    // MARK: Accounts

    /// All accounts, sorted by name.
    func accounts() async throws -> [AccountStatus]
    /// The account with this name, or nil if there is no such account.
    func account(_ name: String) async throws -> AccountStatus?
    /// Adds an account, or replaces the account with the same name.
    func save(_ account: Account) async throws
    /// Adds or replaces an account unless it has changed since the caller read it.
    ///
    /// The comparison and the save are one atomic step, even across processes, so concurrent edits don't overwrite each other.
    ///
    /// - Parameters:
    ///   - account: The account to save.
    ///   - previous: The account as the caller read it; nil if no account had the name.
    /// - Returns: Whether the account was saved. If false, the account in the queue has changed: read it again.
    func save(_ account: Account, replacing previous: Account?) async throws -> Bool
    /// Removes an account and, if `cascades` is true, the sessions that refer to it.
    func deleteAccount(_ name: String, cascades: Bool) async throws
    /// Unblocks an account, so that its sessions can start again.
    func unblockAccount(_ name: String) async throws
    /// Probes each unavailable endpoint of an account immediately, with one session per endpoint.
    func retryEndpoints(of account: String) async throws

    // MARK: The queue

    /// A snapshot of the queue.
    func status() async throws -> QueueStatus
    /// The number of sessions that are running, or that will start without an action by the app or the user. On a started queue, 0 means that no
    /// session starts until the app or the user acts.
    func remainingSessions() async throws -> Int
    /// The combined statistics of all sessions.
    func statistics() async throws -> QueueStatistics
    /// The expected start and end times of up to 1,000 waiting sessions.
    func forecast() async throws -> [SessionForecast]
    /// Reads the queue's whole database and checks it for damage.
    func storeHealth() async throws -> StoreHealth
    /// The number of sessions in quarantine: sessions that the queue set aside, because it can't read or change their stored state.
    func quarantinedCount() async throws -> Int
    /// The sessions in quarantine, oldest first.
    func quarantined() async throws -> [QuarantinedSession]
    /// Restores the session with this ``QuarantinedSession/number`` from quarantine. The session returns to the queue when the queue is next
    /// opened.
    func restoreQuarantined(_ number: Int64) async throws
    /// Deletes the session with this ``QuarantinedSession/number`` from the quarantine.
    func dropQuarantined(_ number: Int64) async throws
    /// Sets the maximum number of active sessions of the queue, or of an account if one is given.
    func setMaxConcurrentSessions(_ limit: Int?, account: String?) async throws
    /// Sets the rate limit of the queue, or of an account if one is given.
    func setRateLimit(_ bytesPerSecond: Int64?, account: String?) async throws
    /// Sets the timetable of rate limits for the queue, or for an account if one is given.
    func setTimetable(_ timetable: BandwidthTimetable?, account: String?) async throws
    /// Sets how long completed sessions stay in the queue.
    func setRetention(_ retention: Retention?) async throws
    /// Sets the free space, in bytes, below which no session starts.
    func setDiskFloor(_ bytes: Int64?) async throws
    /// Sets the network condition.
    func setNetworkCondition(_ condition: NetworkCondition) async throws
    /// Starts the queue.
    func start() async throws
    /// Stops the queue. Does not wait for running sessions.
    func stop(_ mode: StopMode, deadline: Duration?) async throws
    /// Stops the queue. Returns when the queue has stopped, or was started again.
    @discardableResult
    func stopAndWait(_ mode: StopMode, deadline: Duration?) async throws -> StopResult

    /// The change log's events after a revision, followed by new events, for one consumer.
    ///
    /// The stream ends when the queue shuts down. It throws ``QueueError`` if the queue can't be reached. To continue after an error, call this
    /// method with the revision of the last received event.
    ///
    /// - Parameter revision: The revision of the last received event; 0 for all events of the change log.
    func eventStream(since revision: UInt64) -> AsyncThrowingStream<QueueEvent, any Error>

    // MARK: Sessions

    /// Snapshots of the sessions at the given indices, in queue order.
    func sessions(_ range: Range<Int>) async throws -> [SessionStatus]
    /// Snapshots of the sessions of a group, in queue order.
    func sessions(in group: SessionGroup) async throws -> [SessionStatus]
    /// The IDs of all sessions, in queue order.
    func sessionIDs() async throws -> [SessionID]
    /// The first `limit` session IDs that begin with the given characters, ignoring case, in queue order.
    func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID]
    /// A snapshot of one session.
    func status(of id: SessionID) async throws -> SessionStatus
    /// Snapshots of at most `limit` items of a session, in order, starting at `position`.
    func items(of id: SessionID, from position: Int64, limit: Int) async throws -> [ItemStatus]
    /// Adds any number of sessions in one transaction.
    ///
    /// - Returns: For each request, the ID of the new session, or of the existing session that the request duplicates.
    @discardableResult
    func add(_ requests: [SessionRequest], at index: Int?, held: Bool) async throws -> [SessionID]
    /// Adds any number of sessions in one transaction, unless the order has changed since the caller read it. If all requests are
    /// duplicates, the call succeeds regardless of the order, so a caller that lost the result can repeat the call.
    ///
    /// - Parameters:
    ///   - requests: The sessions, in their order in the queue.
    ///   - index: The index of the first new session; nil for the end of the queue.
    ///   - orderRevision: The ``QueueStatus/orderRevision`` that the caller knows; nil to accept any order.
    ///   - held: Whether the sessions are held until they are released.
    /// - Returns: For each request, the ID of the new session, or of the existing session that the request duplicates.
    /// - Throws: ``QueueError``, including the code `staleOrder` if the order has changed.
    @discardableResult
    func add(_ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, held: Bool) async throws -> [SessionID]
    /// Stores sessions as drafts, in one transaction.
    ///
    /// - Returns: The IDs of the drafts, in the order of the requests.
    @discardableResult
    func saveDrafts(_ requests: [SessionRequest]) async throws -> [SessionID]
    /// Adds items to the end of a session.
    func addItems(_ items: [TransferItem], to session: SessionReference) async throws
    /// Replaces or removes items that have not begun, and adds the new items at the end of the session.
    ///
    /// ```swift
    /// try await queue.replaceItems(.at([3]), with: [], in: .id(id))          // removes the item at position 3
    /// try await queue.replaceItems(.all, with: items, in: .id(draft))
    /// ```
    ///
    /// An item has begun if it has a stored checkpoint, has restarted, or is completed or failed. Streams can't be replaced. The session must not
    /// have ended, no run of the session may be in progress, and at least one item must remain.
    ///
    /// - With ``ItemSelection/at(_:)``, the selected items can be neither skipped items, nor folders that the queue has begun to read, nor files in
    ///   such folders.
    /// - With ``ItemSelection/all``, the session must be waiting, held or a draft, must have transferred nothing, and must have at most 10,000 files.
    /// - In a session with an ``SessionOptions/expectedChecksum``, only all items can be replaced, and only with one file.
    ///
    /// - Throws: ``QueueError``, including the code `invalidTransition` if an item can't be replaced or the session's state does not permit the call,
    ///   and the errors of ``addItems(_:to:)``. After an error, nothing is changed.
    func replaceItems(_ selection: ItemSelection, with items: [TransferItem], in session: SessionReference) async throws
    /// Applies an operation to one session.
    ///
    /// - Returns: For ``SessionOperation/pause``, the new state; otherwise nil.
    /// - Throws: ``QueueError``, including the code `invalidTransition` if the session's state does not permit the operation. See also the
    ///   method for the operation, such as ``run(_:again:)-(_,_)``.
    @discardableResult
    func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState?
    /// Applies an operation to a group of sessions, in the order of the queue: `apply(.hold, to: .account("studio"))`. Skips sessions whose
    /// state does not permit the operation.
    ///
    /// - A move places the sessions consecutively.
    /// - An update changes no session if one of the group's sessions can't use the new account or options. A failed or cancelled session is an
    ///   exception: the update skips it.
    /// - A removal of up to 5,000 sessions is one transaction, which removes all of the sessions or none.
    ///
    /// - Returns: The IDs of the changed sessions. For ``SessionOperation/pause``, they include waiting sessions that are now held.
    /// - Throws: ``QueueError``, including the code `noSuchAccount`, or `noSuchSession` for an unknown ID in ``SessionGroup/sessions(_:)``. See also
    ///   the method for the operation.
    @discardableResult
    func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID]
}

extension ControllableQueue {
    /// Same as ``add(_:at:held:)``. The default implementation, for queues that can't compare the revision and add the sessions in one step.
    ///
    /// - Throws: The errors of ``add(_:at:held:)``, and ``QueueError`` with the code `invalidRequest` if the revision is not nil.
    @discardableResult
    public func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, held: Bool
    ) async throws -> [SessionID] {
        guard orderRevision == nil else {
            throw QueueError(.invalidRequest, "This queue can't compare the revision of the order. Add the sessions without a revision.")
        }
        return try await add(requests, at: index, held: held)
    }

    /// Calls the body for each session in order, until the body returns false. Reads the sessions in pages.
    ///
    /// If sessions are added, removed or moved during the iteration, any session may be missing or occur twice.
    ///
    /// - Throws: The errors of ``sessions(_:)``, and the errors of the body.
    public func forEachSession(_ body: (SessionStatus) async throws -> Bool) async throws {
        let (pageSize, pagesAhead) = (2_048, 2)
        try await withThrowingTaskGroup(of: (start: Int, sessions: [SessionStatus]).self) { group in
            var nextStart = 0
            func readNext() {
                let start = nextStart
                nextStart += pageSize
                group.addTask { (start, try await sessions(start..<start + pageSize)) }
            }
            readNext()
            var read: [Int: [SessionStatus]] = [:]
            var start = 0
            while true {
                while read[start] == nil, let result = try await group.next() { read[result.start] = result.sessions }
                guard let found = read.removeValue(forKey: start), !found.isEmpty else { break }
                start += pageSize
                // Start reading the next pages, so that they arrive while the body handles this page.
                while found.count == pageSize, nextStart < start + pagesAhead * pageSize { readNext() }
                for session in found {
                    guard try await body(session) else { return group.cancelAll() }
                }
            }
            group.cancelAll()
        }
    }
}
