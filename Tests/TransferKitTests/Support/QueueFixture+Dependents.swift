import Foundation
import SystemPackage
import TransferCore
import TransferKit

extension QueueFixture {
    /// Creates a database with a session on which all other sessions depend.
    ///
    /// - Parameters:
    ///   - dependents: The number of sessions that depend on the first session.
    ///   - isMissing: Whether to leave out the first session.
    func storeSessions(dependents: Int, isMissing: Bool = false) async throws -> (first: SessionID, dependents: [SessionID]) {
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let first = SessionDraft.draft()
        let drafts = (0..<dependents).map { _ in SessionDraft.draft() }
        let entry = Entry(id: first.id, key: 1, rank: 0, account: 1, state: .waiting)
        var details = ScheduleRow(entry: entry).details
        details.dependency = .after(first.id)
        var sessions = NewSessions(drafts: (isMissing ? [] : [first]) + drafts, createdAt: .now)
        if !isMissing { sessions.append(entry) }
        for (index, draft) in drafts.enumerated() {
            sessions.append(Entry(id: draft.id, key: Int64(index) + 2, rank: Int64(index) + 1, account: 1, state: .waiting), details)
        }
        try await store.commit([.saveAccount(1, .memory("a")), .insertSessions(sessions)])
        await store.close()
        return (first.id, drafts.map(\.id))
    }

    /// Creates a database with `count` sessions that each have one dependent. The dependents are last in the queue's order.
    func storePairs(_ count: Int) async throws -> (firsts: [SessionID], dependents: [SessionID]) {
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let drafts = (0..<2 * count).map { _ in SessionDraft.draft() }
        var sessions = NewSessions(drafts: drafts, createdAt: .now)
        for (index, draft) in drafts.enumerated() {
            let entry = Entry(id: draft.id, key: Int64(index) + 1, rank: Int64(index), account: 1, state: .waiting)
            var details = ScheduleRow(entry: entry).details
            if index >= count { details.dependency = .after(drafts[index - count].id) }
            sessions.append(entry, details)
        }
        try await store.commit([.saveAccount(1, .memory("a")), .insertSessions(sessions)])
        await store.close()
        return (drafts[..<count].map(\.id), drafts[count...].map(\.id))
    }
}
