import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct FolderResumeTests {
    private let fixture: ItemFixture
    private var tree: FolderTree { fixture.tree }

    init() throws {
        fixture = try ItemFixture()
    }

    @Test func resumesAfterEachStep() async throws {
        var generator = SplitMix64(seed: 1)
        try tree.fill(files: 40, using: &generator)
        for number in 0..<2_500 { try tree.file("many/\(number % 7)/\(number)", "x") }
        for number in 0..<1_100 { try tree.file("wide/\(number)/only", "y") }
        try FileManager.default.createDirectory(atPath: tree.path("zz/empty").string, withIntermediateDirectories: true)
        let whole = try await fixture.open([TransferItem(tree.root), TransferItem(tree.path("many/0"))])
        let steps = Locked(0)
        try await fixture.expand(
            whole,
            refusing: { _ in
                steps.withLock { $0 += 1 }; return false
            })
        let expected = try await fixture.items(whole, page: 5_000)
        let statistics = try await fixture.statistics(whole)
        await whole.close()
        let count = steps.withLock { $0 }
        #expect(expected.count > 3_600 && count >= 8)
        for interrupted in 1...count {
            try FileManager.default.removeItem(atPath: fixture.storage.string)
            var store = try await fixture.open([TransferItem(tree.root), TransferItem(tree.path("many/0"))])
            let step = Locked(0)
            await #expect(throws: CancellationError.self) {
                try await fixture.expand(
                    store,
                    refusing: { _ in
                        step.withLock { step in
                            step += 1
                            return step == interrupted
                        }
                    })
            }
            await store.close()
            store = try await fixture.open()
            try await fixture.expand(store)
            let items = try await fixture.items(store, page: 5_000)
            #expect(items == expected, "interrupted before step \(interrupted)")
            #expect(try await fixture.statistics(store) == statistics)
            await store.close()
        }
    }

    /// The session keeps the items of the files that the first run found. The folder that was being read no longer exists, and becomes a failed item.
    @Test func resumesInChangedFolder() async throws {
        for number in 0..<2_500 { try tree.file("\(number % 7)/\(number)", "x") }
        var store = try await fixture.open([TransferItem(tree.root)])
        let batches = Locked(0)
        await #expect(throws: CancellationError.self) {
            try await fixture.expand(
                store,
                refusing: { step in
                    guard case .read = step else { return false }
                    return batches.withLock { count in
                        count += 1
                        return count == 3
                    }
                })
        }
        let found = try await fixture.items(store, page: 5_000).filter { !$0.isFolder }
        #expect(found.count > 1_900 && found.last?.destination.description.hasPrefix("tree/5/") == true)
        #expect(try await fixture.statistics(store)?.files == found.count)
        await store.close()
        // The expansion was reading the folder 5.
        try FileManager.default.removeItem(atPath: tree.path("3").string)
        try FileManager.default.removeItem(atPath: tree.path("5").string)
        try tree.file("0/added", "after the folder was read")
        try tree.file("6/added", "")
        try tree.file("9/added", "")
        store = try await fixture.open()
        try await fixture.expand(store)
        let items = try await fixture.items(store, page: 5_000)
        let six = (0..<2_500).filter { $0 % 7 == 6 }.map { "tree/6/\($0)" } + ["tree/6/added", "tree/9/added"]
        #expect(items.map(\.destination.description) == found.map(\.destination.description) + ["tree/5"] + six.sorted())
        #expect(items.filter { $0.state != .pending }.map(\.destination.description) == ["tree/5"])
        #expect(try await fixture.statistics(store)?.files == items.count)
        // A retry resumes the expansion of the folder after the files that were found before.
        try tree.file("5/1", "found before")
        try tree.file("5/added", "new")
        try await store.commit([.resetSession(1, isWhole: false)])
        #expect(try await fixture.statistics(store)?.files == items.count - 1)
        try await fixture.expand(store)
        let all = try await fixture.items(store, page: 5_000).map(\.destination.description)
        #expect(Set(all) == Set(items.map(\.destination.description)).subtracting(["tree/5"]).union(["tree/5/added"]))
        #expect(Set(all).count == all.count)
        #expect(try await fixture.statistics(store)?.files == all.count)
        await store.close()
    }

    /// The disk with the folder is not mounted when the expansion resumes, so the folder's path leads to an empty folder or to no folder.
    @Test(arguments: [false, true]) func resumesOnceDiskIsMounted(_ hasMountPoint: Bool) async throws {
        for number in 0..<2_500 { try tree.file("\(number)", "x") }
        var store = try await fixture.open([TransferItem(tree.root)])
        let batches = Locked(0)
        await #expect(throws: CancellationError.self) {
            try await fixture.expand(
                store,
                refusing: { step in
                    guard case .read = step else { return false }
                    return batches.withLock { count in
                        count += 1
                        return count == 2
                    }
                })
        }
        let statistics = try #require(try await fixture.statistics(store))
        #expect(statistics.files == 999 && statistics.bytesTotal == nil, "the total size is unknown")
        await store.close()
        let disk = fixture.folder.path.appending("disk")
        try FileManager.default.moveItem(atPath: tree.root.string, toPath: disk.string)
        if hasMountPoint { try FileManager.default.createDirectory(atPath: tree.root.string, withIntermediateDirectories: true) }
        store = try await fixture.open()
        try await fixture.expand(store)
        let failed = try await fixture.items(store, page: 5_000).filter { $0.state == .failed }
        #expect(failed.map(\.destination.description) == ["tree"] && failed.allSatisfy(\.isFolder))
        if hasMountPoint { #expect(failed.first?.error?.message.contains("mount it") == true) }
        // The folder is still missing.
        try await store.commit([.resetSession(1, isWhole: false)])
        try await fixture.expand(store)
        #expect(try await fixture.statistics(store)?.filesFailed == 1)
        if hasMountPoint { try FileManager.default.removeItem(atPath: tree.root.string) }
        try FileManager.default.moveItem(atPath: disk.string, toPath: tree.root.string)
        try await store.commit([.resetSession(1, isWhole: false)])
        try await fixture.expand(store)
        let all = try await fixture.items(store, page: 5_000)
        #expect(all.map(\.destination.description).sorted() == (0..<2_500).map { "tree/\($0)" }.sorted())
        let end = try #require(try await fixture.statistics(store))
        #expect(end.files == 2_500 && end.filesFailed == 0 && end.bytesTotal == 2_500)
        await store.close()
    }

    /// The queue must not mistake the emptied folder for a disk that is not mounted.
    @Test func resumesInEmptiedFolder() async throws {
        for number in 0..<1_500 { try tree.file("\(number)", "x") }
        var store = try await fixture.open([TransferItem(tree.root)])
        let isFirst = Locked(true)
        await #expect(throws: CancellationError.self) {
            try await fixture.expand(
                store,
                refusing: { step in
                    guard case .read = step else { return false }
                    return isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return !isFirst
                    }
                })
        }
        await store.close()
        for number in 0..<1_500 { try FileManager.default.removeItem(atPath: tree.path("\(number)").string) }
        store = try await fixture.open()
        try await fixture.expand(store)
        #expect(try await fixture.items(store, page: 5_000).count == 999)
        #expect(try await fixture.statistics(store)?.filesFailed == 0)
        await store.close()
    }
}
