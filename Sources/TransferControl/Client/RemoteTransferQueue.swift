import Foundation
public import SystemPackage
public import TransferKit

/// A queue owned by another process: `transferq agent`, `transferq run`, or an app with a ``ControlServer``.
///
/// The queue is reached over the socket in its storage folder. Each call opens its own connection, so calls also reach a restarted owner. Both
/// processes must run as the same user. Relative paths refer to this process's working folder. The owner reads files and credentials.
///
/// All methods can be called on any executor. Cancelling a call does not undo its request, which the owner may still perform.
public struct RemoteTransferQueue: ControllableQueue {
    /// The storage folder of the queue.
    public let folder: FilePath

    /// How long the owner may stay silent while a call waits for it.
    public let timeout: Duration

    /// Refers to a queue, without connecting to its owner.
    ///
    /// - Parameters:
    ///   - folder: The storage folder of the queue.
    ///   - timeout: How long the owner may stay silent while a call waits for it. A busy owner sends a heartbeat every two seconds.
    public init(folder: some LocalPathConvertible, timeout: Duration = .seconds(10)) {
        self.folder = folder.filePath
        self.timeout = timeout
    }

    /// The current owner of the queue.
    ///
    /// - Throws: ``QueueError`` with the code `ownerUnreachable` if no process answers, or `ownerSilent` if it does not answer in time.
    public func owner() async throws -> QueueOwner { try await call(.owner) }

    /// Stops the owner if it is an agent. Returns after it has interrupted running sessions, saved their progress and released the storage folder.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if the owner is not an agent.
    public func endOwner() async throws {
        do {
            try await perform(.end)
        } catch let error as QueueError where error.code == .ownerLost {
            // The owner released the folder and exited before it could answer.
        }
    }

    // MARK: Accounts

    /// As `TransferQueue.accounts()`.
    public func accounts() async throws -> [AccountStatus] { try await list(.accounts) }
    /// As `TransferQueue.account(_:)`.
    public func account(_ name: String) async throws -> AccountStatus? {
        let found: [AccountStatus] = try await list(.account(name: name))
        return found.first
    }
    /// As `TransferQueue.save(_:)`.
    public func save(_ account: Account) async throws { try await perform(.save(account)) }
    /// As ``/TransferKit/ControllableQueue/save(_:replacing:)``.
    public func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try await call(.replace(previous, with: account))
    }
    /// As `TransferQueue.deleteAccount(_:cascades:)`.
    public func deleteAccount(_ name: String, cascades: Bool = false) async throws {
        try await perform(.deleteAccount(name: name, cascades: cascades))
    }
    /// As `TransferQueue.unblockAccount(_:)`.
    public func unblockAccount(_ name: String) async throws { try await perform(.unblockAccount(name: name)) }
    /// As `TransferQueue.retryEndpoints(of:)`.
    public func retryEndpoints(of account: String) async throws { try await perform(.retryEndpoints(account: account)) }

    // MARK: The queue

    /// As `TransferQueue.status()`.
    public func status() async throws -> QueueStatus { try await call(.status) }
    /// As `TransferQueue.statistics()`.
    public func statistics() async throws -> QueueStatistics { try await call(.statistics) }
    /// As `TransferQueue.forecast()`.
    public func forecast() async throws -> [SessionForecast] { try await list(.forecast) }
    /// As `TransferQueue.storeHealth()`.
    public func storeHealth() async throws -> StoreHealth { try await call(.storeHealth) }
    /// As `TransferQueue.quarantinedCount()`.
    public func quarantinedCount() async throws -> Int { try await call(.quarantinedCount) }
    /// As `TransferQueue.quarantined()`.
    public func quarantined() async throws -> [QuarantinedRow] { try await list(.quarantined) }
    /// As `TransferQueue.restoreQuarantined(_:)`.
    public func restoreQuarantined(_ number: Int64) async throws { try await perform(.restoreQuarantined(number)) }
    /// As `TransferQueue.dropQuarantined(_:)`.
    public func dropQuarantined(_ number: Int64) async throws { try await perform(.dropQuarantined(number)) }
    /// As `TransferQueue.setSessionLimit(_:account:)`.
    public func setSessionLimit(_ limit: Int?, account: String? = nil) async throws {
        try await perform(.setSessionLimit(limit, account: account))
    }
    /// As `TransferQueue.setRateLimit(_:account:)`.
    public func setRateLimit(_ bytesPerSecond: Int64?, account: String? = nil) async throws {
        try await perform(.setRateLimit(bytesPerSecond, account: account))
    }
    /// As `TransferQueue.setNetworkCondition(_:)`.
    public func setNetworkCondition(_ condition: NetworkCondition) async throws {
        try await perform(.setNetworkCondition(condition))
    }
    /// As `TransferQueue.start()`.
    public func start() async throws { try await perform(.start) }
    /// As `TransferQueue.stop(_:deadline:)`.
    public func stop(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws {
        try await perform(.stop(mode, deadline: deadline))
    }
    /// As `TransferQueue.stopAndWait(_:deadline:)`.
    @discardableResult
    public func stopAndWait(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws -> StopResult {
        try await call(.stopAndWait(mode, deadline: deadline))
    }

    // MARK: Sessions

    /// As `TransferQueue.sessions(_:)`. Long lists are read in pages, between which the order may change.
    public func sessions(_ range: Range<Int> = 0..<Int.max) async throws -> [SessionStatus] {
        let page = 4_096
        var found: [SessionStatus] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(range.upperBound, start + page)
            let part: [SessionStatus] = try await list(.sessions(from: start, to: end))
            found += part
            guard part.count == end - start else { break }
            start = end
        }
        return found
    }
    /// As `TransferQueue.sessionIDs()`.
    public func sessionIDs() async throws -> [SessionID] { try await list(.sessionIDs) }
    /// As ``/TransferKit/ControllableQueue/sessionIDs(beginningWith:limit:)``.
    public func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID] {
        try await list(.findSessionIDs(prefix: prefix, limit: limit))
    }
    /// As `TransferQueue.status(of:)`.
    public func status(of id: SessionID) async throws -> SessionStatus { try await call(.session(id)) }
    /// As `TransferQueue.items(of:from:limit:)`.
    public func items(of id: SessionID, from position: Int64 = 0, limit: Int = 1_000) async throws -> [ItemStatus] {
        let records: [ItemStatusRecord] = try await list(.items(of: id, from: position, limit: limit))
        return try records.map { try $0.status }
    }

    /// As `TransferQueue.enqueue(_:at:held:)`, without handles. Items can't be streams.
    @discardableResult
    public func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        var staging = RequestStaging()
        try staging.stage(requests)
        return try await list(.add(at: index, held: held), after: staging.parts)
    }

    /// As `TransferQueue.enqueue(_:at:held:)`, without a handle: the session continues after this process exits. Items can't be streams.
    @discardableResult
    public func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> SessionID {
        try await add([request], at: index, held: held).first ?? request.id
    }

    /// As `TransferQueue.addItems(_:to:)`. Items can't be streams.
    public func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        var staging = RequestStaging()
        try staging.stage(items)
        try await perform(.addItems(to: session), after: staging.parts)
    }

    /// Applies an operation to one session, like the method of `TransferQueue`.
    @discardableResult
    public func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        let states: [SessionState] = try await list(.apply(operation, to: session))
        return states.first
    }

    /// Applies an operation to a group, like the method of `TransferQueue`.
    @discardableResult
    public func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        guard case .sessions(let ids) = group else { return try await list(.applyToGroup(operation, to: group)) }
        var staging = RequestStaging()
        staging.stage(ids)
        return try await list(.applyToStaged(operation), after: staging.parts)
    }
}
