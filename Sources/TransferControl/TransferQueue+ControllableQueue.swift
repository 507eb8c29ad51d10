public import TransferKit

extension TransferQueue: ControllableQueue {
    /// As ``ControllableQueue/sessionIDs(beginningWith:limit:)``.
    public nonisolated func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID] {
        let wanted = prefix.lowercased()
        if let id = SessionID(wanted), limit > 0 {
            let isThere = (try? await session(id)) != nil
            return isThere ? [id] : []
        }
        return Array(await sessionIDs().lazy.filter { $0.description.hasPrefix(wanted) }.prefix(max(0, limit)))
    }

    /// As ``ControllableQueue/save(_:replacing:)``.
    public nonisolated func save(_ account: Account, replacing previous: Account?) async throws -> Bool {
        try await AccountSaves.shared.inTurn {
            guard await self.account(account.name)?.account == previous else { return false }
            try await self.save(account)
            return true
        }
    }

    /// As ``enqueue(_:at:held:)-([SessionRequest],_,_)``, without handles.
    @discardableResult
    public nonisolated func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        try await enqueue(requests, at: index, held: held).map(\.id)
    }

    /// Calls the method of the operation for one session.
    @discardableResult
    public nonisolated func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        switch operation {
        case .run(let again): try await run(session, again: again)
        case .runNext: try await runNext(session)
        case .pause: return try await pause(session)
        case .resume: try await resume(session)
        case .hold: try await hold(session)
        case .release: try await release(session)
        case .stop: try await stop(session)
        case .cancel(let keepsPartial): try await cancel(session, keepsPartial: keepsPartial)
        case .retry: try await retry(session)
        case .remove(let isForced): try await remove(session, isForced: isForced)
        case .move(let destination): try await move(session, to: destination)
        case .update(let update): try await self.update(session, update)
        }
        return nil
    }

    /// Calls the method of the operation for a group.
    @discardableResult
    public nonisolated func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        switch operation {
        case .run(let again): try await run(group, again: again)
        case .runNext: try await runNext(group)
        case .pause: try await pause(group)
        case .resume: try await resume(group)
        case .hold: try await hold(group)
        case .release: try await release(group)
        case .stop: try await stop(group)
        case .cancel(let keepsPartial): try await cancel(group, keepsPartial: keepsPartial)
        case .retry: try await retry(group)
        case .remove(let isForced): try await remove(group, isForced: isForced)
        case .move(let destination): try await move(group, to: destination)
        case .update(let update): try await self.update(group, update)
        }
    }
}
