public import TransferKit

/// A queue that can be controlled, whether this process owns it or another one does: what `TransferQueue` and ``RemoteTransferQueue`` have in
/// common.
///
/// What each call does, and which `QueueError` it throws, is said at the method of the same name of `TransferQueue`. A queue in another process
/// also throws the codes of ``/TransferKit/QueueError/Code/ownerUnreachable`` and ``/TransferKit/QueueError/Code/ownerLost``.
public protocol ControllableQueue: Sendable {
    // MARK: Accounts

    /// All accounts, by name.
    func accounts() async throws -> [AccountStatus]
    /// One account; nil if there is none of that name.
    func account(_ name: String) async throws -> AccountStatus?
    /// Adds an account, or replaces the one of the same name.
    func save(_ account: Account) async throws
    /// Adds or replaces an account if it is still what the caller knows: nobody's change is lost when several edit one account at once.
    ///
    /// It is compared and saved in one step among all that save by way of this protocol.
    ///
    /// - Parameter previous: What the account was; nil if there was none of that name.
    /// - Returns: Whether it was saved. Otherwise it is another one by now: read it again.
    func save(_ account: Account, replacing previous: Account?) async throws -> Bool
    /// Removes an account, and with `cascades` the sessions that refer to it.
    func deleteAccount(_ name: String, cascades: Bool) async throws
    /// Lets the sessions of a blocked account start again.
    func unblockAccount(_ name: String) async throws
    /// Tries an account's endpoints again now.
    func retryEndpoints(of account: String) async throws

    // MARK: The queue

    /// A snapshot of the queue itself.
    func status() async throws -> QueueStatus
    /// The figures of the whole queue.
    func statistics() async throws -> QueueStatistics
    /// When waiting sessions are expected to start and to end.
    func forecast() async throws -> [SessionForecast]
    /// Reads the whole store and looks for damage.
    func storeHealth() async throws -> StoreHealth
    /// How many sessions could not be read, and are in quarantine.
    func quarantinedCount() async throws -> Int
    /// The sessions in quarantine, the oldest first.
    func quarantined() async throws -> [QuarantinedRow]
    /// Restores a session from quarantine; the next opening of the queue finds it.
    func restoreQuarantined(_ number: Int64) async throws
    /// Deletes a session that is in quarantine.
    func dropQuarantined(_ number: Int64) async throws
    /// Sets how many sessions may be active at once, of the queue or of an account.
    func setSessionLimit(_ limit: Int?, account: String?) async throws
    /// Sets how fast bytes may move, for the queue or for an account.
    func setRateLimit(_ bytesPerSecond: Int64?, account: String?) async throws
    /// Tells the queue of the network.
    func setNetworkCondition(_ condition: NetworkCondition) async throws
    /// Lets sessions start, in turn.
    func start() async throws
    /// Starts nothing new; returns at once.
    func stop(_ mode: StopMode, deadline: Duration?) async throws
    /// Starts nothing new; returns when nothing runs.
    @discardableResult
    func stopAndWait(_ mode: StopMode, deadline: Duration?) async throws -> StopResult

    // MARK: Sessions

    /// Snapshots of sessions, in the order of the queue.
    func sessions(_ range: Range<Int>) async throws -> [SessionStatus]
    /// The IDs of all sessions, in the order of the queue.
    func sessionIDs() async throws -> [SessionID]
    /// The IDs that begin with these characters, in either case, in the order of the queue, and at most so many.
    func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID]
    /// A snapshot of one session.
    func session(_ id: SessionID) async throws -> SessionStatus
    /// Snapshots of a session's items, in their order.
    func items(of id: SessionID, from position: Int64, limit: Int) async throws -> [ItemStatus]
    /// Adds any number of sessions in one transaction, and returns the ID of each, or of the one that it is a duplicate of.
    @discardableResult
    func add(_ requests: [SessionRequest], at index: Int?, held: Bool) async throws -> [SessionID]
    /// Adds items behind all that a session has.
    func addItems(_ items: [TransferItem], to session: SessionReference) async throws
    /// Does something to one session, or throws if it makes no sense in the session's state.
    ///
    /// - Returns: For ``SessionOperation/pause`` the state that the session gets; otherwise nil.
    @discardableResult
    func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState?
    /// Does something to those of a group that it makes sense for, and returns them.
    @discardableResult
    func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID]
}

/// What can be done to sessions; each case is the method of `TransferQueue` of the same name.
public enum SessionOperation: Hashable, Sendable, Codable {
    /// Runs it now; a completed one only with `again`.
    case run(again: Bool = false)
    /// Lets it be the next that starts.
    case runNext
    /// Interrupts it, with its slot kept.
    case pause
    /// Lets it go on after a pause.
    case resume
    /// Sets it aside.
    case hold
    /// Lets it wait for its turn again.
    case release
    /// Takes its slot for another one.
    case stop
    /// Ends it.
    case cancel(keepsPartial: Bool = false)
    /// Lets it wait again after it failed or was cancelled.
    case retry
    /// Removes it; those that come after it only lose that condition if `isForced`.
    case remove(isForced: Bool = false)
    /// Moves it.
    case move(to: MoveDestination)
    /// Changes what the update names.
    case update(SessionUpdate)
}
