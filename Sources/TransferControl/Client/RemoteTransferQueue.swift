import Foundation
public import SystemPackage
public import TransferKit

/// A queue that another process owns: the one of `transferq agent` or `transferq run`, or of an app with a ``ControlServer``.
///
/// It is reached over the socket in the storage folder. Each call makes a connection of its own, so nothing is held between calls, and an owner
/// that was started anew is found by itself. Both processes have to run as the same user. Local paths are taken from this process's working
/// folder; files and credentials are read by the owner.
///
/// All methods can be called from any executor, and each can be cancelled; what it asked for may happen nevertheless.
public struct RemoteTransferQueue: ControllableQueue {
    /// The storage folder of the queue.
    public let folder: FilePath

    /// How long the owner may show no sign of life while it is waited for.
    public let timeout: Duration

    /// Names a queue; nobody is asked yet.
    ///
    /// - Parameters:
    ///   - folder: The storage folder of the queue.
    ///   - timeout: How long the owner may show no sign of life while it is waited for. One that is busy shows one every two seconds.
    public init(folder: FilePath, timeout: Duration = .seconds(10)) {
        self.folder = folder
        self.timeout = timeout
    }

    /// The process that owns the queue now.
    ///
    /// - Throws: ``QueueError`` with the code `ownerUnreachable` if no process answers, or `ownerSilent` if it does not in time.
    public func owner() async throws -> QueueOwner { try await call(.owner) }

    /// Ends the owner, if it is an agent: it interrupts what runs, saves where it got to, and lets the storage folder go before this returns.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if the owner is no agent.
    public func endOwner() async throws {
        do {
            try await order(.end)
        } catch let error as QueueError where error.code == .ownerLost {
            // It let the folder go and ended before it could say so.
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
    public func save(_ account: Account) async throws { try await order(.save(account)) }
    /// As ``ControllableQueue/save(_:replacing:)``.
    public func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try await call(.replace(previous, with: account))
    }
    /// As `TransferQueue.deleteAccount(_:cascades:)`.
    public func deleteAccount(_ name: String, cascades: Bool = false) async throws {
        try await order(.deleteAccount(name: name, cascades: cascades))
    }
    /// As `TransferQueue.unblockAccount(_:)`.
    public func unblockAccount(_ name: String) async throws { try await order(.unblockAccount(name: name)) }
    /// As `TransferQueue.retryEndpoints(of:)`.
    public func retryEndpoints(of account: String) async throws { try await order(.retryEndpoints(account: account)) }

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
    public func restoreQuarantined(_ number: Int64) async throws { try await order(.restoreQuarantined(number)) }
    /// As `TransferQueue.dropQuarantined(_:)`.
    public func dropQuarantined(_ number: Int64) async throws { try await order(.dropQuarantined(number)) }
    /// As `TransferQueue.setSessionLimit(_:account:)`.
    public func setSessionLimit(_ limit: Int?, account: String? = nil) async throws {
        try await order(.setSessionLimit(limit, account: account))
    }
    /// As `TransferQueue.setRateLimit(_:account:)`.
    public func setRateLimit(_ bytesPerSecond: Int64?, account: String? = nil) async throws {
        try await order(.setRateLimit(bytesPerSecond, account: account))
    }
    /// As `TransferQueue.setNetworkCondition(_:)`.
    public func setNetworkCondition(_ condition: NetworkCondition) async throws {
        try await order(.setNetworkCondition(condition))
    }
    /// As `TransferQueue.start()`.
    public func start() async throws { try await order(.start) }
    /// As `TransferQueue.stop(_:deadline:)`.
    public func stop(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws {
        try await order(.stop(mode, deadline: deadline))
    }
    /// As `TransferQueue.stopAndWait(_:deadline:)`.
    @discardableResult
    public func stopAndWait(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws -> StopResult {
        try await call(.stopAndWait(mode, deadline: deadline))
    }

    // MARK: Sessions

    /// As `TransferQueue.sessions(_:)`; a long list comes in parts, between which the order may change.
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
    /// As ``ControllableQueue/sessionIDs(beginningWith:limit:)``.
    public func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID] {
        try await list(.findSessionIDs(prefix: prefix, limit: limit))
    }
    /// As `TransferQueue.session(_:)`.
    public func session(_ id: SessionID) async throws -> SessionStatus { try await call(.session(id)) }
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

    /// As `TransferQueue.enqueue(_:at:held:)`, without a handle: the session goes on when this process ends. Items can't be streams.
    @discardableResult
    public func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> SessionID {
        try await add([request], at: index, held: held).first ?? request.id
    }

    /// As `TransferQueue.addItems(_:to:)`. Items can't be streams.
    public func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        var staging = RequestStaging()
        try staging.stage(items)
        try await order(.addItems(to: session), after: staging.parts)
    }

    /// Does something to one session, as the method of `TransferQueue` does.
    @discardableResult
    public func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        let states: [SessionState] = try await list(.apply(operation, to: session))
        return states.first
    }

    /// Does something to a group, as the method of `TransferQueue` does.
    @discardableResult
    public func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        guard case .sessions(let ids) = group else { return try await list(.applyToGroup(operation, to: group)) }
        var staging = RequestStaging()
        staging.stage(ids)
        return try await list(.applyToStaged(operation), after: staging.parts)
    }
}
