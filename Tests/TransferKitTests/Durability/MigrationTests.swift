import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A store of an older version is brought up to the present one, whatever happens meanwhile.
@Suite(.oneProcessAtATime) struct MigrationTests {
    enum Version: CaseIterable, Sendable {
        case first, second, third

        func make(in folder: FilePath) throws {
            switch self {
            case .first: try Schema1Store.make(in: folder)
            case .second: try Schema2Store.make(in: folder)
            case .third: try Schema3Store.make(in: folder)
            }
        }
    }

    @Test(arguments: Version.allCases) func aStoreOfAnOlderVersionKeepsAll(_ version: Version) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path.appending("store")
        try version.make(in: path)
        try await expectAll(in: path, "undisturbed")
    }

    @Test(arguments: Version.allCases) func aMigrationThatIsKilledIsDoneByTheNextProcess(_ version: Version) async throws {
        let folder = try TemporaryFolder()
        let moments = Locked(0)
        try version.make(in: folder.path.appending("counted"))
        try await QueueStore.open(.folder(folder.path.appending("counted")), clock: .system) { _ in moments.withLock { $0 += 1 } }.close()
        let count = moments.withLock { $0 }
        let isWhole = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all"
        let distance = isWhole ? 1 : max(1, count / 25)
        for moment in stride(from: isWhole ? 1 : Int.random(in: 1...distance), through: count, by: distance) {
            let path = folder.path.appending("\(moment)")
            try version.make(in: path)
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path.string as String, moment = moment as Int] in
                let moments = Locked(0)
                let store = try await QueueStore.open(.folder(FilePath(path)), clock: .system) { _ in
                    let now = moments.withLock { moments in
                        moments += 1
                        return moments
                    }
                    if now == moment { kill(getpid(), SIGKILL) }
                }
                await store.close()
                kill(getpid(), SIGKILL)
            }
            try await expectAll(in: path, "killed at moment \(moment)")
        }
    }

    private func expectAll(in path: FilePath, _ comment: Comment) async throws {
        let store = try await QueueStore.open(.folder(path), clock: .system)
        let (scheduler, quarantined, _) = try await store.load(.memory)
        #expect(quarantined.isEmpty, comment)
        #expect(scheduler.accounts[7]?.account == Schema1Store.account, comment)
        // The ranks of the old store run backwards.
        #expect(scheduler.sessions.map(\.id) == Schema1Store.states.indices.reversed().map(Schema1Store.id), comment)
        #expect(scheduler.sessions.map(\.target) == [.failed, .completed, .waiting, .waiting], comment)
        let records = try await store.sessions([1, 2, 3, 4])
        for (index, record) in records.enumerated() {
            #expect(record.status.tags.sorted() == ["tag \(index)", "x"], comment)
            #expect(record.status.context == Data("\(index)".utf8), comment)
            #expect(record.options.metadata == ["index": "\(index)"], comment)
            #expect(record.status.name == "session \(index)" && record.status.attempts == 3 && record.status.statistics.files == 2, comment)
            #expect(try await store.items(of: record.key, from: 0, limit: 9).map(\.bytesTotal) == [100, 100], comment)
        }
        #expect(records.map(\.status.statistics.bytesDone) == [0, 60, 200, 0], comment)
        #expect(records[3].status.error?.code == .rejected, comment)
        let checkpoint = try await store.checkpoint(session: 2, position: 0, endpoint: "memory://a/", generation: 4)
        #expect(checkpoint?.checkpoint == Checkpoint(data: Data("upload-1".utf8), confirmed: 60), comment)
        #expect(checkpoint?.identity?.inode == 6, comment)
        try StoreInspection(path).expectNoContradictions(comment)
        await store.close()
    }
}
