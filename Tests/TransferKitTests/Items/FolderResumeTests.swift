import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Expansions that are interrupted, and that a later run resumes.
@Suite struct FolderResumeTests {
    private let fixture: ItemFixture
    private var tree: FolderTree { fixture.tree }

    init() throws {
        fixture = try ItemFixture()
    }

    /// Interrupts the expansion before each of its steps. The next run completes it, with the same rows as an expansion without an interruption.
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

    /// Between the runs, files and folders are deleted and added. The manifest keeps the files found before, and gets each other file once. The folder
    /// that was being read is gone, so it is a failed item: the queue can't distinguish a deletion from a disk that is not mounted.
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
        // The folder 5 was being read.
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
        await store.close()
    }
}
