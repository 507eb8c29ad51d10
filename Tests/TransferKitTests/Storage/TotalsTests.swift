import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct TotalsTests {
    @Test(arguments: UInt64(1)...6)
    func totalsMatchRows(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a"))])
        var next: SessionKey = 1
        var existing: [SessionKey] = []
        for _ in 0..<40 {
            var writes: [StoreWrite] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                guard let key = existing.randomElement(using: &random), Int.random(in: 0..<4, using: &random) > 0 else {
                    var draft = SessionDraft.draft()
                    draft.items = (0..<Int.random(in: 1...4, using: &random)).map {
                        ItemDraft(
                            source: Data("/\($0)".utf8), destination: Data("\($0)".utf8), size: Int64.random(in: 0...900, using: &random))
                    }
                    writes.append(.session(next, rank: next, draft, [.waiting, .held].randomElement(using: &random) ?? .waiting))
                    existing.append(next)
                    next += 1
                    continue
                }
                writes.append(change(of: key, &random))
                if case .deleteSession = writes.last { existing.removeAll { $0 == key } }
            }
            try await store.commit(writes)
            let (totals, expected) = (try await store.totals(leavingOut: []), try await expectedTotals(in: store))
            #expect(totals.states.filter { $0.value != SessionFigures() } == expected)
        }
        // Computes the totals without some sessions, and compares them with the totals after the deletion of these sessions.
        let some = Array(existing.prefix(3))
        let without = try await store.totals(leavingOut: some)
        try await store.commit(some.map { .deleteSession($0) })
        #expect(without.states.filter { $0.value != SessionFigures() } == (try await expectedTotals(in: store)))
        await store.close()
    }

    private func change(of key: SessionKey, _ random: inout SplitMix64) -> StoreWrite {
        let position = Int64.random(in: 0..<3, using: &random)
        let endpoint = Endpoint(transport: "memory", address: "memory://\(Int.random(in: 0..<2, using: &random))/")
        let bytes = Int64.random(in: 0...900, using: &random)
        let identity = SourceIdentity(size: 900, modificationTime: 0, inode: 0, device: 0, bootID: "")
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            let state = SessionState.allCases.randomElement(using: &random) ?? .paused
            return .schedule(ScheduleRow(entry: Entry(id: SessionID(), key: key, rank: key, account: 1, state: state)))
        case 1: return .addItems(key, [ItemDraft(source: Data("/x".utf8), destination: Data("x".utf8), size: bytes)])
        case 2: return .file(key, position: position, .completed(TransferReceipt(bytes: bytes), endpoint: endpoint))
        case 3: return .file(key, position: position, .failed(.broken))
        case 4: return .file(key, position: position, .restarted(generation: 2, .broken))
        case 5: return .resetSession(key, isWhole: Bool.random(using: &random))
        case 6: return .discardPartial(key)
        case 7: return .deleteSession(key)
        case 8: return .file(key, position: 0, .size(bytes))
        default:
            return .file(
                key, position: 0,
                .checkpoint(Checkpoint(data: Data([1]), confirmed: bytes), endpoint: endpoint, generation: 1, identity))
        }
    }

    /// Returns the expected totals, added up session by session.
    private func expectedTotals(in store: QueueStore) async throws -> [SessionState: SessionFigures] {
        let keys = try await store.pool.read { try SessionKey.fetchAll($0, sql: "SELECT session FROM schedule") }
        var states: [SessionState: SessionFigures] = [:]
        for session in try await store.sessions(keys) {
            let statistics = session.status.statistics
            var sum = states[session.status.state] ?? SessionFigures()
            sum.files += Int64(statistics.files)
            sum.filesDone += Int64(statistics.filesDone)
            sum.filesFailed += Int64(statistics.filesFailed)
            sum.bytesTotal += statistics.bytesKnown
            sum.bytesDone += statistics.bytesDone
            states[session.status.state] = sum
        }
        return states.filter { $0.value != SessionFigures() }
    }
}
