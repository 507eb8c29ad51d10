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
    /// When the old stores ask a server again.
    private static let nextAttempt = Date(timeIntervalSince1970: 4_102_444_800)
    /// Half an hour before that, as an opening makes removals due that wait for more than a day.
    private static let clock = EngineClock(
        now: EngineClock.system.now, date: { nextAttempt.addingTimeInterval(-1_800) }, sleep: EngineClock.system.sleep)

    enum Version: CaseIterable, Sendable {
        case first, second, third, fourth

        func make(in folder: FilePath) throws {
            switch self {
            case .first: try Schema1Store.make(in: folder)
            case .second: try Schema2Store.make(in: folder)
            case .third: try Schema3Store.make(in: folder)
            case .fourth: try Schema4Store.make(in: folder)
            }
        }
    }

    @Test(arguments: Version.allCases) func aStoreOfAnOlderVersionKeepsAll(_ version: Version) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path.appending("store")
        try version.make(in: path)
        try await expectAll(in: path, of: version, "undisturbed")
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
            try await expectAll(in: path, of: version, "killed at moment \(moment)")
        }
    }

    /// A contradiction in an old store is found when its session is read, and is no reason to refuse the others.
    @Test func aFileWithoutItsSessionDoesNotKeepAStoreClosed() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path.appending("store")
        try Schema3Store.make(in: path, withOrphan: true)
        let store = try await QueueStore.open(.folder(path), clock: .system)
        #expect(try await store.sessions([1, 2, 3, 4]).count == 4)
        await store.close()
    }

    /// What the first two versions did not have.
    private func expectAdditions(_ store: QueueStore, _ comment: Comment) async throws {
        let records = try await store.sessions([5, 6])
        #expect(records.map(\.status.direction) == [.upload, .download], comment)
        #expect(records.map(\.folder) == [nil, "/no/such/target"], comment)
        #expect(records.map(\.status.statistics.bytesTotal) == [200, nil], comment)
        let upload = try await store.items(of: 5, from: 0, limit: 9)
        #expect(upload.map(\.destination.description) == ["folder/in/name", "placed", "waiting"], comment)
        #expect(upload.map(\.source) == ["/no/such/folder/in/name", "/no/such/placed", "/no/such/waiting"], comment)
        #expect(upload.map(\.isFolder) == [false, false, true], comment)
        let files = try await store.pendingFiles(of: 5, after: -1, limit: 9)
        #expect(files.map(\.uploadPlace?.text) == [nil, "https://example.org/place"], comment)
        let downloads = try await store.pendingFiles(of: 6, after: -1, limit: 9)
        #expect(downloads.map(\.source) == ["/no/such/target/sub/name"] && downloads.map(\.localName) == ["sub/name"], comment)
        #expect(downloads.map(\.size) == [nil] && downloads.map(\.isListed) == [false] && downloads.map(\.confirmed) == [30], comment)
        let checkpoint = try await store.checkpoint(session: 6, position: 0, endpoint: "memory://a/", generation: 1)
        #expect(checkpoint?.checkpoint.expiresAt == Date(timeIntervalSince1970: 9_000) && checkpoint?.identity == nil, comment)
    }

    /// What is to be removed: all of it still, and what was put off is no reason to leave its server alone.
    private func expectRemovals(_ store: QueueStore, _ comment: Comment) async throws {
        let now = Self.clock.date()
        let found = try await store.dueDiscards(at: now, limit: 9)
        #expect(found.due.map(\.key) == [1, 4, 5] && found.unreadable == [2], comment)
        #expect(found.due.map(\.checkpoint.confirmed) == [10, 40, 0], comment)
        #expect(found.next == Self.nextAttempt, comment)
        let parts = try await store.dueDiscards(at: now, limit: 9, isLocalOnly: true)
        #expect(parts.due.map(\.key) == [5] && parts.unreadable.isEmpty && parts.next == nil, comment)
        let later = try await store.laterDiscards(at: now, after: nil, limit: 9)
        #expect(later.map(\.key) == [3] && later.map(\.attempts) == [9], comment)
    }

    private func expectAll(in path: FilePath, of version: Version, _ comment: Comment) async throws {
        let store = try await QueueStore.open(.folder(path), clock: Self.clock)
        let (scheduler, quarantined, _) = try await store.load(.memory)
        #expect(quarantined.isEmpty, comment)
        #expect(scheduler.accounts[7]?.account == Schema1Store.account, comment)
        // The ranks of the old store run backwards.
        let isLate = version == .third || version == .fourth
        let ids = Schema1Store.states.indices.reversed() + (isLate ? [4, 5] : [])
        #expect(scheduler.sessions.map(\.id) == ids.map(Schema1Store.id), comment)
        let targets: [SessionState] = [.failed, .completed] + Array(repeating: .waiting, count: isLate ? 4 : 2)
        #expect(scheduler.sessions.map(\.target) == targets, comment)
        if isLate { try await expectAdditions(store, comment) }
        if version == .fourth { try await expectRemovals(store, comment) }
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
