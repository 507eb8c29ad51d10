import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct FileLeftoverTests {
    @Test func removesLeftoversOfCompletedFileLater() async throws {
        let folder = try TemporaryFolder()
        var store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let account = Account.memory("a")
        var draft = SessionDraft.draft()
        draft.items = [ItemDraft(source: Data("/file".utf8), destination: Data("file".utf8), size: 9)]
        try await store.commit([.saveAccount(1, account), .session(1, rank: 0, draft)])
        var receipt = TransferReceipt(bytes: 9)
        receipt.leftovers = Checkpoint(data: Data("parts".utf8), confirmed: 0)
        #expect(
            try await store.commitIdentifyingFailure([.file(1, position: 0, .completed(receipt, endpoint: account.endpoints[0]))])
                .hasDueDiscards)
        await store.close()
        store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let due = try await store.dueDiscards(at: .distantFuture, limit: 9).due
        #expect(due.map(\.checkpoint.data) == [Data("parts".utf8)])
        #expect(due.first?.endpoint == account.endpoints[0])
        let stored = try await store.pool.read { try String.fetchOne($0, sql: "SELECT receipt FROM file") }
        #expect(stored?.contains("leftovers") == false)
        await store.close()
    }

    @Test(arguments: [
        (FailureClass.sourceChanged, true), (.resumeLost, true), (.sourceLost, false), (.permanent, false), (.transient, false),
    ])
    func removesOnlyUselessLeftovers(_ failure: FailureClass, _ isRemoved: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let account = Account.memory("a")
        var draft = SessionDraft.draft()
        draft.items = (0..<2).map { ItemDraft(source: Data("/file-\($0)".utf8), destination: Data("\($0)".utf8), size: 9) }
        let identity = SourceIdentity(size: 9, modificationTime: 0, inode: 0, device: 0, bootID: "")
        let saved = { (position: Int64) in
            let checkpoint = Checkpoint(data: Data("upload \(position)".utf8), confirmed: 4)
            return StoreWrite.file(
                1, position: position, .checkpoint(checkpoint, endpoint: account.endpoints[0], generation: 1, identity))
        }
        try await store.commit([.saveAccount(1, account), .session(1, rank: 0, draft), saved(0), saved(1)])
        let error = TransferError(failure, .internalFailure, "It failed.")
        let pending = try await store.commitIdentifyingFailure([.file(1, position: 1, .failed(error))])
        #expect(pending.hasDueDiscards == isRemoved)
        let due = try await store.dueDiscards(at: .distantFuture, limit: 9).due
        #expect(due.map(\.checkpoint.data) == (isRemoved ? [Data("upload 1".utf8)] : []))
        #expect(try await store.sessions([1]).first?.status.statistics.bytesDone == (isRemoved ? 4 : 8))
        // The content of a retry has another name, so the pending removal can't remove that content.
        try await store.commit([.resetSession(1, isWhole: false)])
        let generation = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT generation FROM file WHERE position = 1") }
        #expect(generation == (isRemoved ? 2 : 1))
        await store.close()
    }
}
