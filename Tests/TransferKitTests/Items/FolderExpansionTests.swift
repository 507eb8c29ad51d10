import Foundation
import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct FolderExpansionTests {
    private let fixture: ItemFixture
    private var tree: FolderTree { fixture.tree }

    init() throws {
        fixture = try ItemFixture()
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func listsAllFiles(_ seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        try tree.fill(files: 300, using: &generator)
        let store = try await fixture.open([TransferItem(tree.root)])
        let totals = try await fixture.expand(store)
        let items = try await fixture.items(store)
        let expected = try tree.files()
        #expect(items.map(\.position) == Array(0..<Int64(expected.count)))
        #expect(Set(items.map(\.destination.description)) == Set(expected.map { "tree/\($0)" }))
        #expect(items.map(\.source) == items.map { fixture.folder.path.pushing(FilePath(bytes: $0.destination.bytes)) })
        // The files and subfolders of each folder are sorted together, by the bytes of their names.
        let keys = items.map { $0.destination.bytes.split(separator: UInt8(ascii: "/")).map(Array.init) }
        #expect(keys == keys.sorted { $0.lexicographicallyPrecedes($1) { $0.lexicographicallyPrecedes($1) } })
        let sizes = try expected.map { try FileManager.default.attributesOfItem(atPath: tree.path($0).string)[.size] as? Int64 ?? 0 }
        let statistics = try await fixture.statistics(store)
        #expect(statistics?.files == expected.count && statistics?.bytesTotal == sizes.reduce(0, +))
        #expect(totals.files == Int64(expected.count) - 1 && totals.bytes == sizes.reduce(0, +))
        let pending = try await store.pendingFiles(of: 1, after: -1, limit: 1_000)
        #expect(pending.map(\.source) == items.map(\.source) && pending.map(\.destination) == items.map(\.destination.bytes))
        await store.close()
    }

    @Test func keepsOrderOfItems() async throws {
        for name in ["a", "one/x", "one/y", "b", "two/deep/z", "empty/none/"] {
            try tree.file(name.hasSuffix("/") ? name + "q" : name, "12")
        }
        try FileManager.default.removeItem(atPath: tree.path("empty/none/q").string)
        let items = ["a", "one", "b", "two", "empty", "a"].map { TransferItem(tree.path($0)) }
        let store = try await fixture.open(items)
        let before = try await fixture.items(store, page: 2)
        #expect(before.map(\.destination.description) == ["a", "one", "b", "two", "empty", "a"])
        #expect(before.map(\.isFolder) == [false, true, false, true, true, false])
        #expect(
            try await store.pendingFiles(of: 1, after: -1, limit: 9).count == 1,
            "the items after a folder wait until the folder is expanded")
        try await fixture.expand(store)
        let after = try await fixture.items(store, page: 2)
        #expect(after.map(\.destination.description) == ["a", "one/x", "one/y", "b", "two/deep/z", "a"])
        #expect(after.map(\.position) == [0, 1, 2, 3, 4, 5])
        #expect(try await fixture.statistics(store)?.files == 6)
        #expect(try await fixture.statistics(store)?.bytesTotal == 12)
        await store.close()
    }

    @Test func expansionEndsIfStepsAreIgnored() async throws {
        try tree.file("x")
        let store = try await fixture.open([TransferItem(tree.root), TransferItem(tree.path("x"))])
        // The closure ignores all steps, as the scheduler does after the session was removed.
        await #expect(throws: CancellationError.self) { try await FolderExpansion(of: 1, in: store) { _ in }.run() }
        await store.close()
    }

    @Test func keepsBytesOfUnusualNames() async throws {
        let long = [UInt8](repeating: UInt8(ascii: "n"), count: 255)
        let names: [[UInt8]] = [[0xFF, 0xFE], Array("line\nbreak".utf8), long, [0x20], Array("...".utf8), Array("\\".utf8)]
        for name in names {
            let path = FilePath(bytes: tree.root.bytes + [UInt8(ascii: "/")] + name)
            try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: [.ownerReadWrite]).close()
        }
        let store = try await fixture.open([TransferItem(tree.root, as: try RemotePath("given/name"))])
        try await fixture.expand(store)
        let items = try await fixture.items(store)
        #expect(Set(items.map(\.destination.bytes)) == Set(names.map { Array("given/name/".utf8) + $0 }))
        #expect(items.allSatisfy { FileManager.default.isReadableFile(atPath: $0.source.string) || $0.source.string.contains("\u{FFFD}") })
        await store.close()
    }

    @Test(arguments: [
        (SymbolicLinkPolicy.follow, ["real/in", "to-file", "to-folder/in"], ["looping", "nowhere", "real/up", "to-folder/up"]),
        (.followFiles, ["real/in", "to-file"], ["looping", "nowhere"]), (.skip, ["real/in"], []),
    ])
    func handlesLinksByPolicy(_ policy: SymbolicLinkPolicy, _ sent: [String], _ failed: [String]) async throws {
        try tree.file("real/in", "inside")
        try tree.link("to-file", to: "real/in")
        try tree.link("to-folder", to: "real")
        try tree.link("nowhere", to: "missing")
        try tree.link("looping", to: "looping")
        try tree.link("real/up", to: "..")
        let store = try await fixture.open([TransferItem(tree.root, symbolicLinks: policy)])
        try await fixture.expand(store)
        let items = try await fixture.items(store)
        #expect(items.destinations() == sent.map { "tree/\($0)" })
        #expect(items.destinations(.failed) == failed.map { "tree/\($0)" })
        let skipped: [String] =
            switch policy {
            case .follow: []
            case .followFiles: ["real/up", "to-folder"]
            case .skip: ["looping", "nowhere", "real/up", "to-file", "to-folder"]
            }
        #expect(items.destinations(.skipped) == skipped.map { "tree/\($0)" })
        #expect(try await fixture.statistics(store)?.filesFailed == failed.count)
        let message = items.first { $0.destination.description == "tree/real/up" }?.error?.message
        #expect(message?.contains(policy == .follow ? "is the same folder as one of its parent folders" : "is a symbolic link") == true)
        await store.close()
    }

    @Test func skipsOtherFileTypes() async throws {
        try tree.file("a", "1")
        try tree.fifo("pipe")
        let store = try await fixture.open([TransferItem(tree.root)])
        try await fixture.expand(store)
        let items = try await fixture.items(store)
        #expect(items.destinations() == ["tree/a"])
        #expect(items.destinations(.skipped) == ["tree/pipe"])
        #expect(items.last?.error?.message.contains("is a FIFO") == true)
        #expect(try await fixture.statistics(store).map { [$0.files, $0.filesFailed] } == [1, 0])
        #expect(try await store.firstFailure(of: 1) == nil)
        await store.close()
    }

    @Test func skipsStorageFolder() async throws {
        let store = try await fixture.open([TransferItem(fixture.folder.path, as: try RemotePath("all"))])
        try tree.file("a", "1")
        try await fixture.expand(store)
        #expect(try await fixture.items(store).destinations() == ["all/tree/a"])
        #expect(try await fixture.items(store).destinations(.skipped) == ["all/store"])
        await store.close()
    }

    @Test func retriesUnreadableFolder() async throws {
        try tree.file("a", "1")
        try tree.file("z", "1")
        // The path of the folder is longer than the system permits, so not even the superuser can read the folder.
        let component = String(repeating: "d", count: 250)
        try await fixture.withDeepFolder(component) {
            let store = try await fixture.open([TransferItem(tree.root)])
            try await fixture.expand(store)
            let items = try await fixture.items(store)
            #expect(items.destinations() == ["tree/a", "tree/z"])
            let failed = items.filter { $0.state == .failed }
            #expect(failed.count == 1 && failed.first?.isFolder == true)
            #expect(try await store.sessions([1]).first?.status.failedItem == failed.first?.source)
            #expect(try await store.firstFailure(of: 1) == failed.first?.error)
            try await store.commit([.resetSession(1, isWhole: false)])
            #expect(try await fixture.statistics(store).map { [$0.files, $0.filesFailed] } == [3, 0])
            #expect(try await fixture.items(store).last?.isFolder == true)
            try await fixture.expand(store)
            #expect(try await fixture.items(store).destinations(.failed) == failed.map(\.destination.description))
            #expect(try await fixture.statistics(store).map { [$0.files, $0.filesFailed] } == [3, 1])
            await store.close()
        }
    }

    @Test func addedItemsFollowEarlierItems() async throws {
        try tree.file("one/x", "1")
        try tree.file("two/y", "22")
        let file = try tree.file("a", "333")
        let store = try await fixture.open([TransferItem(file)])
        func add(_ paths: FilePath...) async throws {
            try await store.commit([.addItems(1, try await store.drafts(of: paths.map { TransferItem($0) }))])
        }
        try await add(file)
        #expect(try await store.pendingFiles(of: 1, after: 0, limit: 9).map(\.position) == [1], "no folder precedes the item")
        try await add(tree.path("one"), file)
        try await add(tree.path("two"))
        try await add(file)
        #expect(try await store.pendingFiles(of: 1, after: 0, limit: 9).map(\.position) == [1])
        #expect(try await fixture.statistics(store)?.files == 6)
        try await fixture.expand(store)
        #expect(try await fixture.items(store).destinations() == ["a", "a", "one/x", "a", "two/y", "a"])
        #expect(try await fixture.statistics(store).map { [Int64($0.files), $0.bytesKnown] } == [6, 15])
        await store.close()
    }

    /// - Parameter maximumNameBytes: The memory for names, in bytes. 64 KiB are always available, but 20,000 names need more.
    @Test(arguments: [0, 32 << 20]) func readsTwentyThousandEntriesInBatches(_ maximumNameBytes: Int) async throws {
        for number in 0..<20_000 {
            let path = tree.path("\(number)")
            try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: [.ownerReadWrite]).close()
        }
        let store = try await fixture.open([TransferItem(tree.root)])
        let largest = Locked(0)
        let reads = Locked(0)
        try await fixture.expand(
            store,
            refusing: { step in
                if case .read(_, let batch, _) = step { largest.withLock { $0 = max($0, batch.count) } }
                return false
            },
            fault: { _, _ in
                reads.withLock { $0 += 1 }; return nil
            }, maximumNameBytes: maximumNameBytes)
        #expect(largest.withLock { $0 } == 1_000)
        #expect(reads.withLock { $0 >= 40_000 } == (maximumNameBytes == 0), "the folder is read more than once")
        let names = try await fixture.items(store, page: 5_000).map(\.destination.description)
        #expect(names == (0..<20_000).map { "tree/\($0)" }.sorted())
        await store.close()
    }
}
