import Dispatch
import Foundation
import GRDB
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Folders that can be opened, but can't be read to the end.
@Suite(.oneProcessAtATime) struct UnreadableFolderTests {
    private let fixture: ItemFixture
    private var tree: FolderTree { fixture.tree }

    init() throws {
        fixture = try ItemFixture()
    }

    private func fill(_ folder: String, _ count: Int) throws {
        try FileManager.default.createDirectory(atPath: tree.path(folder).string, withIntermediateDirectories: true)
        for number in 0..<count {
            try FileDescriptor.open(
                tree.path(folder).appending("\(number)"), .writeOnly, options: [.create], permissions: [.ownerReadWrite]
            ).close()
        }
    }

    private func fault(in folder: String, after entries: Int) -> FolderFault {
        let path = tree.path(folder)
        return { $0 == path && $1 >= entries ? .ioError : nil }
    }

    @Test(arguments: [(300, 200), (20_000, 17_000)])
    func listsWholeFolderOrNothing(_ count: Int, _ entries: Int) async throws {
        try tree.file("a", "1")
        try fill("middle", count)
        // This subfolder comes first in the byte order.
        try tree.file("middle/!/inner", "22")
        try tree.link("middle/!/broken", to: "nowhere")
        try tree.file("z", "333")
        let store = try await fixture.open([TransferItem(tree.root)])
        let totals = try await fixture.expand(store, fault: fault(in: "middle", after: entries))
        var items = try await fixture.items(store, page: 5_000)
        #expect(items.destinations() == ["tree/a", "tree/z"])
        #expect(items.destinations(.failed) == ["tree/middle"])
        #expect(items.first { $0.state == .failed }?.isFolder == true)
        #expect(totals == ManifestTotals(files: 2, failed: 1, bytes: 4))
        #expect(try await fixture.statistics(store).map { [Int64($0.files), Int64($0.filesFailed), $0.bytesKnown] } == [3, 1, 4])
        let folders = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM directory") }
        #expect(folders == 1, "the only stored folder is the root of the tree")

        try await store.commit([.resetSession(1, isWhole: false)])
        try await fixture.expand(store)
        items = try await fixture.items(store, page: 5_000)
        let expected = ["tree/a", "tree/z", "tree/middle/!/inner"] + (0..<count).map { "tree/middle/\($0)" }
        #expect(items.destinations().sorted() == expected.sorted())
        #expect(items.destinations(.failed) == ["tree/middle/!/broken"])
        #expect(Set(items.map(\.position)).count == items.count)
        await store.close()
    }

    /// The names do not fit into the given memory, so the expansion reads the folder several times, and fails when the folder can't be read again. By
    /// then, the session has items for some of the files.
    @Test func resumesFolderThatCannotBeReadAgain() async throws {
        try fill("middle", 20_000)
        let store = try await fixture.open([TransferItem(tree.root)])
        let path = tree.path("middle")
        let error = await #expect(throws: TransferError.self) {
            try await fixture.expand(store, fault: { $0 == path && $1 > 20_000 ? .ioError : nil }, maximumNameBytes: 0)
        }
        #expect(error?.message.contains("middle") == true)
        #expect(try await fixture.items(store, page: 5_000).count > 1_000)
        try await fixture.expand(store, maximumNameBytes: 0)
        let items = try await fixture.items(store, page: 5_000)
        #expect(items.count == 20_000 && Set(items.map(\.destination)).count == 20_000)
        #expect(items.allSatisfy { $0.state == .pending })
        await store.close()
    }

    private static func openAllAvailableDescriptors() -> [FileDescriptor] {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limits = rlimit()
        let known = unsafe getrlimit(resource, &limits)
        #expect(known == 0)
        limits.rlim_cur = 200
        let result = unsafe setrlimit(resource, &limits)
        #expect(result == 0)
        var descriptors: [FileDescriptor] = []
        while let descriptor = try? FileDescriptor.open(FilePath("/dev/null"), .readOnly) { descriptors.append(descriptor) }
        return descriptors
    }

    /// Runs two reads at the same time, so that both reader connections of the database open all files that they need.
    private static func openBothReaders(of pool: DatabasePool) async throws {
        let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // The semaphores block only threads of the pool.
        async let one: Void = pool.read { database in
            _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM session")
            first.signal()
            second.wait()
        }
        async let other: Void = pool.read { database in
            _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM session")
            second.signal()
            first.wait()
        }
        _ = try await (one, other)
    }

    @Test func waitsForDescriptors() async throws {
        await #expect(processExitsWith: .success) {
            let fixture = try QueueFixture()
            let tree = try FolderTree(fixture.folder.path.appending("tree"))
            try tree.file("a", "1")
            let queue = try await fixture.openWithAccounts()
            let session = try await queue.enqueue(.upload(items: [TransferItem(tree.root)], to: "a"))
            try await Self.openBothReaders(of: queue.store.pool)
            let descriptors = Self.openAllAvailableDescriptors()
            try await queue.start()
            await queue.waitUntilIdle()
            let status = try await session.status
            guard case .noSpace(let error) = status.why else {
                Issue.record("The session waits for another reason: \(status)")
                return
            }
            #expect(error.message.contains("too many open files"))
            for descriptor in descriptors { try descriptor.close() }
            await fixture.clock.waitForSleep(of: .seconds(30))
            fixture.clock.advance(by: .seconds(30))
            #expect(try await session.value.state == .completed)
            #expect(fixture.memory.completePaths.map(\.description) == ["tree/a"])
            await queue.shutdown()
        }
    }
}
