import TransferCore
import TransferKit

/// The queue as commands see it. Today always one that this process opened; a queue that another process owns can stand in here.
protocol QueueAccess: Sendable {
    func accounts() async throws -> [AccountStatus]
    func account(_ name: String) async throws -> AccountStatus?
    func save(_ account: Account) async throws
    func deleteAccount(_ name: String, cascades: Bool) async throws
    func unblockAccount(_ name: String) async throws

    func status() async throws -> QueueStatus
    func statistics() async throws -> QueueStatistics
    func storeHealth() async throws -> StoreHealth
    func setSessionLimit(_ limit: Int?, account: String?) async throws
    func setRateLimit(_ bytesPerSecond: Int64?, account: String?) async throws

    func sessions(_ range: Range<Int>) async throws -> [SessionStatus]
    func sessionIDs() async throws -> [SessionID]
    func session(_ id: SessionID) async throws -> SessionStatus
    func items(of id: SessionID, from position: Int64, limit: Int) async throws -> [ItemStatus]

    /// Adds sessions in one transaction, and returns the ID of each, or of the one that it is a duplicate of.
    func add(_ requests: [SessionRequest], at index: Int?, held: Bool) async throws -> [SessionID]

    /// Throws if the operation does not fit the session's state.
    func apply(_ operation: SessionOperation, to id: SessionID) async throws

    /// Returns those of the group that the operation fits.
    func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID]
}

extension QueueAccess {
    private static var page: Int { 4_096 }

    /// Reads the sessions in order, a page at a time, until the body returns false.
    func forEachSession(_ body: (SessionStatus) async throws -> Bool) async throws {
        var start = 0
        while true {
            let sessions = try await sessions(start..<start + Self.page)
            for session in sessions {
                guard try await body(session) else { return }
            }
            guard sessions.count == Self.page else { return }
            start += Self.page
        }
    }
}

/// What commands do to sessions.
enum SessionOperation: Sendable {
    case run
    case runNext
    case pause
    case resume
    case hold
    case release
    case stop
    case cancel(keepsPartial: Bool)
    case retry
    case remove
    case move(MoveDestination)
    case update(SessionUpdate)
}

extension TransferQueue: QueueAccess {
    nonisolated func add(_ requests: [SessionRequest], at index: Int?, held: Bool) async throws -> [SessionID] {
        try await enqueue(requests, at: index, held: held).map(\.id)
    }

    nonisolated func apply(_ operation: SessionOperation, to id: SessionID) async throws {
        switch operation {
        case .run: try await run(id)
        case .runNext: try await runNext(id)
        case .pause: try await pause(id)
        case .resume: try await resume(id)
        case .hold: try await hold(id)
        case .release: try await release(id)
        case .stop: try await stop(id)
        case .cancel(let keepsPartial): try await cancel(id, keepsPartial: keepsPartial)
        case .retry: try await retry(id)
        case .remove: try await remove(id)
        case .move(let destination): try await move(id, to: destination)
        case .update(let update): try await self.update(id, update)
        }
    }

    nonisolated func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        switch operation {
        case .run: try await run(group)
        case .runNext: try await runNext(group)
        case .pause: try await pause(group)
        case .resume: try await resume(group)
        case .hold: try await hold(group)
        case .release: try await release(group)
        case .stop: try await stop(group)
        case .cancel(let keepsPartial): try await cancel(group, keepsPartial: keepsPartial)
        case .retry: try await retry(group)
        case .remove: try await remove(group)
        case .move(let destination): try await move(group, to: destination)
        case .update(let update): try await self.update(group, update)
        }
    }
}
