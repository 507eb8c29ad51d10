import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct FolderTransferTests {
    private let fixture: QueueFixture
    private let tree: FolderTree

    init() throws {
        fixture = try QueueFixture()
        tree = try FolderTree(fixture.folder.path.appending("tree"))
    }

    @Test func uploadsAllFiles() async throws {
        var generator = SplitMix64(seed: 7)
        try tree.fill(files: 100, using: &generator)
        let queue = try await fixture.openWithAccounts()
        let note = Data("a note".utf8)
        let session = try await queue.enqueue(
            try .upload(items: [TransferItem(tree.root), .data(note, as: try RemotePath("notes/1"))], to: "a"))
        try await queue.start()
        let status = try await session.value
        let expected = try tree.files()
        #expect(status.state == .completed)
        #expect(status.statistics.files == expected.count + 1 && status.statistics.filesDone == expected.count + 1)
        #expect(status.statistics.bytesDone == status.statistics.bytesTotal)
        #expect(Set(fixture.memory.completePaths.map(\.description)) == Set(expected.map { "tree/\($0)" } + ["notes/1"]))
        for path in expected {
            let content = try Data(contentsOf: URL(fileURLWithPath: tree.path(path).string))
            #expect(fixture.memory.contents(of: "tree/\(path)") == content)
        }
        #expect(fixture.memory.contents(of: "notes/1") == note)
        #expect(try await queue.items(of: session.id).map(\.state) == Array(repeating: .completed, count: expected.count + 1))
        await queue.shutdown()
    }

    @Test(arguments: [false, true]) func sendsFilesWhileFolderIsRead(_ isInterrupted: Bool) async throws {
        for number in 0..<1_100 { try tree.file("a/\(number)", "x") }
        try tree.file("b/last", "y")
        let gate = ThreadGate()
        let slow = tree.path("b")
        var queue = try await fixture.open(localReadObserver: { if $0 == slow { gate.block() } })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        var session = try await queue.enqueue(.upload([tree.root], to: "a"))
        let events = queue.events
        try await queue.start()
        await gate.waitForBlockedThreads(1)
        var completed: Set<Int64> = []
        for await event in events {
            guard case .itemCompleted(_, let position, _) = event.kind else { continue }
            completed.insert(position)
            if completed.count == 900 { break }
        }
        let status = try await session.status
        #expect(status.state == .running && status.statistics.bytesTotal == nil && status.statistics.filesDone >= 900)
        if isInterrupted {
            try await queue.stop()
            gate.open(1)
            await queue.shutdown()
            queue = try await fixture.open()
            session = try await queue.session(session.id)
            #expect(try await session.status.statistics.filesDone >= 900)
            let later = queue.events
            try await queue.start()
            #expect(try await session.value.state == .completed)
            for await event in later {
                if case .queueBecameIdle = event.kind { break }
                guard case .itemCompleted(_, let position, _) = event.kind else { continue }
                #expect(!completed.contains(position))
            }
        } else {
            gate.open(1)
            #expect(try await session.value.state == .completed)
        }
        let end = try await session.status.statistics
        #expect(end.files == 1_101 && end.filesDone == 1_101 && end.bytesTotal == 1_101)
        #expect(Set(fixture.memory.completePaths.map(\.description)) == Set(try tree.files().map { "tree/\($0)" }))
        await queue.shutdown()
    }

    /// An earlier version of TransferKit stored rows of a folder before it had read the whole folder.
    @Test func deletesRowsOfEarlierVersion() async throws {
        for number in 0..<20 { try tree.file("\(number)", "x") }
        var queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(.upload([tree.root], to: "a"))
        await queue.shutdown()
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        let key = try #require(try await store.pool.read { try SessionKey.fetchOne($0, sql: "SELECT key FROM session") })
        let item = try #require(try await store.pool.read { try Int64.fetchOne($0, sql: "SELECT sequence FROM item") })
        try await store.commit([.expansion(key, .begin(item: item))])
        try await store.pool.write { [root = tree.root.string] db in
            try db.execute(
                sql: "INSERT INTO directory(session, number, source, destination) VALUES (?, 0, CAST(? AS BLOB), CAST('tree' AS BLOB))",
                arguments: [key, root])
            for (position, name) in ["3", "gone", "1"].enumerated() {
                try db.execute(
                    sql: """
                        INSERT INTO file(session, position, kind, directory, source, destination, state, size, generation, unsized)
                        VALUES (?, ?, 'file', 0, CAST(? AS BLOB), x'', ?, 1, 1, 0)
                        """, arguments: [key, position, name, name == "1" ? "failed" : "pending"])
            }
        }
        await store.close()
        queue = try await fixture.open()
        try await queue.start()
        let status = try await queue.session(session.id).value
        #expect(status.state == .completed && status.statistics.files == 20 && status.statistics.filesDone == 20)
        #expect(Set(fixture.memory.completePaths.map(\.description)) == Set((0..<20).map { "tree/\($0)" }))
        await queue.shutdown()
    }

    @Test func failsBeforeWholeFolderIsRead() async throws {
        for number in 0..<1_100 { try tree.file("b/\(number)", "x") }
        for number in 0..<10_000 { try tree.file("d/\(number)", "") }
        try FileManager.default.createSymbolicLink(atPath: tree.path("a").string, withDestinationPath: "/nonexistent")
        try tree.file("c/one", "y")
        let gate = ThreadGate()
        let slow = tree.path("c")
        let queue = try await fixture.open(localReadObserver: { if $0 == slow { gate.block() } })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        var options = SessionOptions()
        options.onItemFailure = .failSession
        let session = try await queue.enqueue(.upload(items: [TransferItem(tree.root, symbolicLinks: .follow)], to: "a", options: options))
        try await queue.start()
        await gate.waitForBlockedThreads(1)
        gate.open(1)
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.statistics.files < 11_000)
        await queue.shutdown()
    }

    @Test func completesEmptyFolder() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try .upload([tree.root], to: "a"))
        try await queue.start()
        let status = try await session.value
        #expect(status.state == .completed && status.statistics.files == 0)
        await queue.shutdown()
    }

    @Test func failsOnlyVanishedFolder() async throws {
        let file = try tree.file("kept", "1")
        let vanished = try tree.folder("gone")
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try .upload([vanished, file], to: "a"))
        try FileManager.default.removeItem(atPath: vanished.string)
        let events = queue.events
        try await queue.start()
        let failure = await events.first { kind in
            if case .itemFailed(_, _, let error) = kind { error } else { nil }
        }
        #expect(failure?.message.contains("\(vanished) does not exist") == true)
        _ = try? await session.value
        let status = try await queue.status(of: session.id)
        #expect(status.state == .failed && status.failedItem == vanished)
        #expect(fixture.memory.completePaths.map(\.description) == ["kept"])
        await queue.shutdown()
    }

    @Test func findsSourcesInMovedBaseFolder() async throws {
        let container = try FolderTree(fixture.folder.path.appending("before"))
        try container.file("media/a/1", "one")
        try container.file("2", "two")
        let outside = try tree.file("outside", "three")
        var queue = try await open(base: container.root)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        // A relative path starts at the base folder.
        let items = [container.path("media"), "2", outside].map { TransferItem($0) }
        let session = try await queue.enqueue(
            try .upload(items: items + [.data(Data("four".utf8), as: try RemotePath("blob"))], to: "a"))
        await queue.shutdown()
        let after = fixture.folder.path.appending("after")
        try FileManager.default.moveItem(atPath: container.root.string, toPath: after.string)
        queue = try await open(base: after)
        let moved = try await queue.items(of: session.id)
        #expect(moved.prefix(3).map(\.source) == [after.appending("media"), after.appending("2"), outside])
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        let contents = ["media/a/1", "2", "outside", "blob"].map {
            fixture.memory.contents(of: $0).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(contents == ["one", "two", "three", "four"])
        await queue.shutdown()
        queue = try await open(base: nil)
        #expect(try await queue.items(of: session.id).first?.source == after.pushing("media/a/1"), "the queue remembers the base folder")
        await queue.shutdown()
    }

    /// The path of the base folder contains a link, an item is named without that link, and a link leads out of the base folder.
    @Test(arguments: [SymbolicLinkPolicy.skip, .followFiles])
    func findsSourcesBelowLinkedBaseFolder(_ policy: SymbolicLinkPolicy) async throws {
        let container = try FolderTree(fixture.folder.path.appending("before"))
        try container.file("media/a/1", "one")
        try container.file("2", "two")
        let outside = try tree.file("outside/3", "three")
        try container.link("out", to: outside.removingLastComponent().string)
        let alias = fixture.folder.path.appending("alias")
        try FileManager.default.createSymbolicLink(atPath: alias.string, withDestinationPath: fixture.folder.path.string)
        var queue = try await open(base: alias.appending("before"))
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let paths = [container.path("media"), "2", "out/3", outside.removingLastComponent()]
        let session = try await queue.enqueue(.upload(items: paths.map { TransferItem($0, symbolicLinks: policy) }, to: "a"))
        await queue.shutdown()
        let after = fixture.folder.path.appending("after")
        try FileManager.default.moveItem(atPath: container.root.string, toPath: after.string)
        queue = try await open(base: alias.appending("after"))
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        let contents = ["media/a/1", "2", "3", "outside/3"].map {
            fixture.memory.contents(of: $0).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(contents == ["one", "two", "three", "three"])
        await queue.shutdown()
    }

    private func open(base: FilePath?) async throws -> TransferQueue {
        try await TransferQueue(storage: .folder(fixture.folder.path.appending("store"), base: base), transports: [fixture.memory])
    }
}
