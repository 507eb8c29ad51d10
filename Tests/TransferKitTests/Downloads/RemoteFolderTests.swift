import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RemoteFolderTests {
    private let fixture: DownloadFixture
    private var memory: MemoryTransport { fixture.memory }

    init() throws {
        fixture = try DownloadFixture()
    }

    /// Creates files with different contents on the server, and returns the contents by name.
    private func provide(_ names: [String]) -> [String: Data] {
        Dictionary(
            uniqueKeysWithValues: names.enumerated().map { number, name in
                let content = DownloadFixture.content(100 + 997 * number, seed: number)
                memory.provide(content, as: name)
                return (name, content)
            })
    }

    private func request(_ items: TransferItem..., options: SessionOptions = SessionOptions()) throws -> SessionRequest {
        try .download(items: items, from: "a", to: fixture.target, options: options)
    }

    private func folder(_ path: String, as name: FilePath? = nil, symbolicLinks: SymbolicLinkPolicy = .skip) throws -> TransferItem {
        .remoteFolder(try RemotePath(path), as: name, symbolicLinks: symbolicLinks)
    }

    /// Waits until the queue is idle, and returns all files below the target, without folders.
    private func files(_ queue: TransferQueue) async throws -> [String] {
        await queue.waitUntilIdle()
        return try fixture.names().filter { name in
            let attributes = try FileManager.default.attributesOfItem(atPath: fixture.target.pushing(FilePath(name)).string)
            return attributes[.type] as? FileAttributeType != .typeDirectory
        }
    }

    @Test func downloadsAllFiles() async throws {
        let contents = provide(["trip/day 1/b.jpg", "trip/day 1/a.jpg", "trip/z", "trip/day 2/deep/er/x", "trip.jpg", "tripod/y"])
        memory.provideFolder("trip/empty")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(folder("trip")))
        let before = try await queue.items(of: session.id)
        #expect(before.count == 1 && before[0].isFolder && before[0].source == fixture.target.appending("trip"))
        #expect(before[0].destination.description == "trip")
        try await queue.start()
        let status = try await session.value
        let expected = ["trip/day 1/a.jpg", "trip/day 1/b.jpg", "trip/day 2/deep/er/x", "trip/z"]
        #expect(try await files(queue) == expected)
        for name in expected { #expect(fixture.content(name) == contents[name]) }
        #expect(status.statistics.files == 4 && status.statistics.filesDone == 4)
        let total = Int64(expected.reduce(0) { $0 + (contents[$1]?.count ?? 0) })
        #expect(status.statistics.bytesTotal == total && status.statistics.bytesDone == total)
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.destination.description) == ["trip/z", "trip/day 1/a.jpg", "trip/day 1/b.jpg", "trip/day 2/deep/er/x"])
        #expect(items.map(\.source) == items.map { fixture.target.pushing(FilePath($0.destination.description)) })
        #expect(items.allSatisfy { $0.state == .completed })
        #expect(!FileManager.default.fileExists(atPath: fixture.target.appending("trip").appending("empty").string))
        await queue.shutdown()
    }

    @Test(arguments: [nil, "copy"] as [FilePath?]) func downloadsEndpointFolder(name: FilePath?) async throws {
        let contents = provide(["top", "trip/a", "trip/day 1/b"])
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(.remoteFolder(RemotePath.endpointFolder, as: name)))
        #expect(try await queue.status(of: session.id).name == "a")
        #expect(try await queue.items(of: session.id).map(\.destination) == [.endpointFolder])
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 3)
        let prefix = name.map { "\($0)/" } ?? ""
        #expect(try await files(queue) == ["top", "trip/a", "trip/day 1/b"].map { prefix + $0 })
        for (path, content) in contents { #expect(fixture.content(prefix + path) == content) }
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.destination.description) == ["top", "trip/a", "trip/day 1/b"])
        #expect(items.map(\.source) == items.map { fixture.target.pushing(FilePath(prefix + $0.destination.description)) })
        await queue.shutdown()
    }

    @Test func rejectsEndpointFolderBesideOtherItems() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let whole = TransferItem.remoteFolder(RemotePath.endpointFolder)
        for items in try [
            [whole, folder("trip")], [folder("trip"), whole], [whole, whole], [.remote(RemotePath.endpointFolder)],
            [.remote(RemotePath.endpointFolder, as: "x")],
        ] as [[TransferItem]] {
            let error = await #expect(throws: QueueError.self) {
                try await queue.enqueue(.download(items: items, from: "a", to: fixture.target))
            }
            #expect(error?.message.contains("endpoint's folder") == true, "\(String(describing: error))")
        }
        let upload = await #expect(throws: QueueError.self) {
            try await queue.enqueue(.upload(items: [.data(Data(), as: RemotePath.endpointFolder)], to: "a"))
        }
        #expect(upload?.message.contains("endpoint's folder") == true)
        await queue.shutdown()
    }

    @Test func rejectsItemsAddedBesideEndpointFolder() async throws {
        _ = provide(["top", "trip/a"])
        let queue = try await fixture.queue.openWithAccounts()
        let whole = TransferItem.remoteFolder(RemotePath.endpointFolder)
        let other = try await queue.enqueue(try request(folder("trip")))
        let session = try await queue.enqueue(try request(whole, options: SessionOptions(filesInFlight: 1)))
        func expectRefusal(_ item: TransferItem, _ id: SessionID) async {
            let error = await #expect(throws: QueueError.self) { try await queue.addItems([item], to: .id(id)) }
            #expect(error?.message.contains("endpoint's folder") == true, "\(String(describing: error))")
        }
        await expectRefusal(whole, other.id)
        try await expectRefusal(folder("trip"), session.id)
        await expectRefusal(whole, session.id)
        try await queue.replaceItems(.all, with: [whole], in: .id(other.id))
        try await queue.remove(other.id)
        let gate = memory.gate("top", atByte: 0)
        try await queue.start()
        try await gate.reached()
        try await expectRefusal(folder("trip", as: "again"), session.id)
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        await queue.shutdown()
    }

    @Test func renamesFolderIfConfigured() async throws {
        let contents = provide(["a/b/c/1", "a/b/c/d/2", "other"])
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(folder("a/b/c", as: "x/y"), .remote(try RemotePath("other"))))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(try await files(queue) == ["other", "x/y/1", "x/y/d/2"])
        #expect(fixture.content("x/y/d/2") == contents["a/b/c/d/2"])
        await queue.shutdown()
    }

    @Test func recognizesFolderRequestedAsFile() async throws {
        let contents = provide(["trip/1", "trip/in/2", "single", "other/3"])
        let queue = try await fixture.queue.openWithAccounts()
        let items = try ["trip", "single", "other"].map { TransferItem.remote(try RemotePath($0)) }
        let session = try await queue.enqueue(.download(items: items, from: "a", to: fixture.target))
        try await queue.start()
        let status = try await session.value
        #expect(status.statistics.files == 4 && status.statistics.filesDone == 4)
        #expect(status.statistics.bytesTotal == status.statistics.bytesDone)
        #expect(try await files(queue) == ["other/3", "single", "trip/1", "trip/in/2"])
        for name in contents.keys { #expect(fixture.content(name) == contents[name]) }
        #expect(try await queue.items(of: session.id).map(\.destination.description) == ["single", "trip/1", "trip/in/2", "other/3"])
        // Each folder was requested as a file only once.
        #expect(memory.attempts.map(\.path.description).filter { ["trip", "other"].contains($0) }.count == 2)
        await queue.shutdown()
    }

    /// An expected checksum belongs to a single file, so it can't apply to a folder.
    @Test func rejectsExpectedChecksumOfFolder() async throws {
        _ = provide(["trip/1"])
        let queue = try await fixture.queue.openWithAccounts()
        let options = SessionOptions(expectedChecksum: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let session = try await queue.enqueue(try request(.remote(try RemotePath("trip")), options: options))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .isFolder && error?.message == "trip is a folder on the server.")
        await queue.shutdown()
    }

    @Test func completesEmptyFolder() async throws {
        memory.provideFolder("empty")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(folder("empty")))
        try await queue.start()
        let status = try await session.value
        #expect(status.state == .completed && status.statistics.files == 0)
        #expect(try fixture.names() == [])
        await queue.shutdown()
    }

    @Test func failsOnlyMissingFolder() async throws {
        _ = provide(["1"])
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(folder("gone"), .remote(try RemotePath("1"))))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.state) == [.failed, .completed] && items[0].isFolder)
        #expect(items[0].error?.code == .noSuchRemoteFile && items[0].source == fixture.target.appending("gone"))
        #expect(try await session.status.statistics.filesFailed == 1)
        let contents = provide(["gone/2"])
        try await queue.retry(session.id)
        #expect(try await session.value.statistics.files == 2)
        #expect(fixture.content("gone/2") == contents["gone/2"])
        await queue.shutdown()
    }

    @Test func retriesOnlyUnreadableSubfolder() async throws {
        let contents = provide(["trip/1", "trip/locked/2", "trip/locked/in/3", "trip/open/4"])
        memory.failNext(with: TransferError(.permanent, .forbidden, "You may not read it."), for: "trip/locked")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(folder("trip")))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await files(queue) == ["trip/1", "trip/open/4"])
        let failed = try #require(try await queue.items(of: session.id).first { $0.state == .failed })
        #expect(failed.isFolder && failed.destination.description == "trip/locked" && failed.error?.message == "You may not read it.")
        try await queue.retry(session.id)
        let status = try await session.value
        #expect(status.statistics.files == 4 && status.statistics.filesDone == 4 && status.statistics.filesFailed == 0)
        for name in contents.keys { #expect(fixture.content(name) == contents[name]) }
        #expect(memory.listings.map(\.description) == ["trip", "trip/locked", "trip/open", "trip/locked", "trip/locked/in"])
        await queue.shutdown()
    }

    @Test func appliesOverwritePolicyToExistingFiles() async throws {
        let contents = provide(["trip/1", "trip/2"])
        try FileManager.default.createDirectory(atPath: fixture.target.appending("trip").string, withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: URL(filePath: fixture.target.appending("trip/1").string))
        let queue = try await fixture.queue.openWithAccounts()
        var session = try await queue.enqueue(try request(folder("trip")))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await queue.items(of: session.id).map(\.state) == [.failed, .completed])
        #expect(fixture.content("trip/1") == Data("mine".utf8) && fixture.content("trip/2") == contents["trip/2"])
        session = try await queue.enqueue(try request(folder("trip"), options: SessionOptions(overwrite: .always)))
        #expect(try await session.value.state == .completed)
        #expect(fixture.content("trip/1") == contents["trip/1"])
        await queue.shutdown()
    }

    @Test func downloadsFolderRequestedAsFileIntoExistingFolder() async throws {
        let contents = provide(["trip/1", "single"])
        for name in ["trip", "single"] {
            try FileManager.default.createDirectory(atPath: fixture.target.appending(name).string, withIntermediateDirectories: false)
        }
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(try request(.remote(try RemotePath("trip")), .remote(try RemotePath("single"))))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(fixture.content("trip/1") == contents["trip/1"])
        let failed = try await queue.items(of: session.id).filter { $0.state == .failed }
        #expect(failed.map(\.destination.description) == ["single"] && failed.first?.error?.code == .fileExists)
        #expect(try await files(queue) == ["trip/1"])
        await queue.shutdown()
    }

    @Test func reportsSkippedLinks() async throws {
        let contents = provide(["trip/1", "elsewhere"])
        memory.provideLink("trip/file", to: "elsewhere")
        memory.provideLink("trip/loop", to: "trip")
        let queue = try await fixture.queue.openWithAccounts()
        var session = try await queue.enqueue(try request(folder("trip")))
        try await queue.start()
        #expect(try await session.value.statistics.files == 1)
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.state) == [.completed, .skipped, .skipped])
        #expect(items[1].error?.message == "trip/file is a symbolic link on the server and is not downloaded.")
        session = try await queue.enqueue(try request(folder("trip", as: "followed", symbolicLinks: .followFiles)))
        #expect(try await session.value.statistics.files == 2)
        #expect(try await files(queue) == ["followed/1", "followed/file", "trip/1"])
        #expect(fixture.content("followed/file") == contents["elsewhere"])
        await queue.shutdown()
    }

    @Test func rejectsInvalidRequests() async throws {
        try Data().write(to: URL(filePath: fixture.target.appending("taken").string))
        let queue = try await fixture.queue.openWithAccounts()
        let refused: [([TransferItem], QueueError.Code)] = try [
            ([folder("trip", symbolicLinks: .follow)], .invalidRequest),
            ([folder("trip", as: "../out")], .invalidRequest), ([folder("trip", as: "/out")], .invalidRequest),
            ([folder("a/x"), folder("b/x")], .invalidRequest),
            ([folder("a/x"), .remote(RemotePath("b"), as: "x/y")], .invalidRequest),
            ([.remote(RemotePath("b"), as: "x/y/z"), folder("a/x")], .invalidRequest),
            ([.remote(RemotePath("trip")), .remote(RemotePath("b"), as: "trip/1")], .invalidRequest),
            ([.remote(RemotePath("b"), as: "trip/in/1"), .remote(RemotePath("trip"))], .invalidRequest),
            ([folder("taken")], .fileExists),
        ]
        for (items, code) in refused {
            let error = await #expect(throws: QueueError.self) {
                try await queue.enqueue(.download(items: items, from: "a", to: fixture.target))
            }
            #expect(error?.code == code, "\(items)")
        }
        let upload = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [try folder("trip")], to: "a")) }
        #expect(upload?.code == .invalidRequest)
        #expect(upload?.message == "trip is a download item. Add it to a download, without an upload URL or a creation URL.")
        let checksum = SessionOptions(expectedChecksum: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let single = await #expect(throws: QueueError.self) { try await queue.enqueue(try request(folder("trip"), options: checksum)) }
        #expect(single?.code == .invalidRequest)
        #expect(try await queue.sessions().isEmpty)
        await queue.shutdown()
    }
}
