import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A link that replaces a file or folder gives no access to files that the policy for symbolic links excludes.
@Suite struct LinkSwapTests {
    private let fixture: QueueFixture
    private let tree: FolderTree

    init() throws {
        fixture = try QueueFixture()
        tree = try FolderTree(fixture.folder.path.appending("tree"))
    }

    @Test(arguments: [
        (SymbolicLinkPolicy.skip, ["tree/a", "tree/z"]), (.followFiles, ["tree/a", "tree/b", "tree/z"]),
        (.follow, ["tree/a", "tree/b", "tree/deep/below/c", "tree/z"]),
    ])
    func followsFilesAndFoldersThatBecomeLinksOnlyIfPolicyAllows(_ policy: SymbolicLinkPolicy, _ sent: [String]) async throws {
        for name in ["a", "b", "deep/below/c", "z"] { try tree.file(name, "content") }
        let other = try FolderTree(fixture.folder.path.appending("other"))
        try other.file("secret", "secret!")
        try other.file("below/c", "secret!")
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("tree/a")
        let session = try await queue.enqueue(
            .upload(
                items: [TransferItem(tree.root, symbolicLinks: policy)], to: "a",
                options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        try await gate.reached()
        for (name, target) in [("b", other.path("secret")), ("deep", other.root)] {
            try FileManager.default.removeItem(atPath: tree.path(name).string)
            try tree.link(name, to: target.string)
        }
        gate.open()
        _ = try? await session.value
        #expect(fixture.memory.completePaths.map(\.description).sorted() == sent)
        let failed = try await queue.items(of: session.id).filter { $0.state == .failed }
        #expect(failed.count == 4 - sent.count && failed.allSatisfy { $0.error?.failureClass == .sourceLost })
        await queue.shutdown()
    }

    /// The paths "first" and "linked/c" contained links from the beginning.
    @Test(arguments: [(SymbolicLinkPolicy.skip, false), (.followFiles, true), (.follow, true)])
    func followsNamedFileThatBecomesLinkOnlyIfPolicyAllows(_ policy: SymbolicLinkPolicy, isFollowed: Bool) async throws {
        for name in ["a", "b", "target", "folder/c"] { try tree.file(name, "content") }
        try tree.file("secret", "secret!")
        try tree.link("first", to: "target")
        try tree.link("linked", to: "folder")
        let queue = try await fixture.openWithAccounts()
        let item = { [tree] in TransferItem(tree.path($0), symbolicLinks: policy) }
        // The queue stores the items after a folder in another table.
        let session = try await queue.enqueue(
            .upload(items: [item("a"), item("first"), item("folder"), item("b"), item("linked/c")], to: "a"))
        var later = item("b")
        later.destination = try RemotePath("later")
        try await queue.addItems([later], to: .id(session.id))
        for name in ["a", "b", "first"] {
            try FileManager.default.removeItem(atPath: tree.path(name).string)
            try tree.link(name, to: tree.path("secret").string)
        }
        try await queue.start()
        _ = try? await session.value
        let state = try await session.status.state
        #expect(state == (isFollowed ? .completed : .failed))
        let failed = try await queue.items(of: session.id).filter { $0.state == .failed }
        #expect(failed.map(\.destination.description).sorted() == (isFollowed ? [] : ["a", "b", "later"]))
        for item in failed { #expect(item.error?.message.contains("symbolic link") == true, "\(item.error?.message ?? "")") }
        #expect(fixture.memory.contents(of: "first") == Data((isFollowed ? "secret!" : "content").utf8))
        #expect(fixture.memory.contents(of: "c") == Data("content".utf8))
        #expect(isFollowed || fixture.memory.contents(of: "a") == nil)
        await queue.shutdown()
    }

    /// The links replace parent folders after `enqueue`, or after the queue has read the folder. The link "base" was in the paths from the beginning.
    @Test(arguments: [SymbolicLinkPolicy.skip, .followFiles, .follow])
    func followsParentFolderThatBecomesLinkOnlyIfPolicyAllows(_ policy: SymbolicLinkPolicy) async throws {
        for name in ["real/parent/file", "real/parent/folder/inside", "early/folder/a", "early/folder/z"] {
            try tree.file(name, "content")
        }
        try tree.link("base", to: "real")
        let other = try FolderTree(fixture.folder.path.appending("other"))
        for name in ["file", "folder/inside", "folder/z"] { try other.file(name, "secret!") }
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("folder/a")
        let item = { [tree] in TransferItem(tree.path($0), symbolicLinks: policy) }
        let session = try await queue.enqueue(
            .upload(
                items: [item("early/folder"), item("base/parent/file"), item("base/parent/folder")], to: "a",
                options: SessionOptions(filesInFlight: 1)))
        #expect(try await queue.items(of: session.id)[1].source == tree.path(policy == .skip ? "real/parent/file" : "base/parent/file"))
        try await queue.start()
        try await gate.reached()
        for name in ["real/parent", "early"] {
            try FileManager.default.moveItem(atPath: tree.path(name).string, toPath: tree.path(name + " before").string)
            try tree.link(name, to: other.root.string)
        }
        gate.open()
        _ = try? await session.value
        let sent = ["folder/z", "file", "folder/inside"].filter { fixture.memory.contents(of: $0) == Data("secret!".utf8) }
        let expected =
            switch policy {
            case .skip: [] as [String]
            // With this policy, a file that the app named may be a link, so the file's parent folders may be links, too.
            case .followFiles: ["file"]
            case .follow: ["folder/z", "file", "folder/inside"]
            }
        #expect(sent == expected)
        #expect(fixture.memory.contents(of: "folder/a") == Data("content".utf8))
        await queue.shutdown()
    }

    @Test func doesNotFollowFolderThatBecomesLink() async throws {
        try tree.file("a/inside", "1")
        try tree.file("b/inside", "1")
        let other = try FolderTree(fixture.folder.path.appending("other"))
        try other.file("inside", "secret!")
        let items = try ItemFixture()
        let store = try await items.open([TransferItem(tree.root, symbolicLinks: .followFiles)])
        let path = tree.path("b")
        let fault: FolderFault = { folder, _ in
            // At this point, the root has been read, and its first subfolder is being read.
            if folder.lastComponent == "a", (try? FileManager.default.removeItem(atPath: path.string)) != nil {
                try? FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: other.root.string)
            }
            return nil
        }
        try await items.expand(store, fault: fault)
        let found = try await items.items(store)
        #expect(found.destinations() == ["tree/a/inside"])
        #expect(found.destinations(.failed) == ["tree/b"])
        await store.close()
    }
}
