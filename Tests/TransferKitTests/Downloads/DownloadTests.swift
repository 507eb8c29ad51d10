import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct DownloadTests {
    private let fixture: DownloadFixture

    init() throws {
        fixture = try DownloadFixture()
    }

    @Test func storesFilesUnderRequestedNames() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        for (name, size) in [("reels/7.mov", 12_345), ("empty", 0), ("notes/note", 1)] {
            fixture.memory.provide(DownloadFixture.content(size), as: name)
        }
        let session = try await queue.enqueue(
            .download(
                items: [
                    .remote(try RemotePath("reels/7.mov"), as: "seven/final.mov"), .remote(try RemotePath("empty")),
                    .remote(try RemotePath("notes/note")),
                ], from: "a", to: fixture.target))
        let before = try await session.status
        #expect(before.direction == .download && before.name == "7.mov and 2 more")
        #expect(before.statistics.bytesTotal == nil && before.statistics.filesUnsized == 3)
        #expect(try await queue.items(of: session.id).allSatisfy { $0.bytesTotal == nil })
        try await queue.start()
        let end = try await session.value
        #expect(end.statistics.bytesTotal == 12_346 && end.statistics.bytesDone == 12_346 && end.statistics.filesDone == 3)
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.bytesTotal) == [12_345, 0, 1] && items.map(\.bytesDone) == [12_345, 0, 1])
        #expect(items[0].source == fixture.target.appending("seven/final.mov") && items[0].destination.description == "reels/7.mov")
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["empty", "note", "seven", "seven/final.mov"])
        #expect(fixture.content("seven/final.mov") == DownloadFixture.content(12_345))
        #expect(try await queue.statistics().bytesTotal == 12_346)
        await queue.shutdown()
    }

    /// The shutdown must remove all part files, because the app may never open the queue again.
    @Test func shutdownLeavesNoPartFiles() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let names = (0..<200).map { "file \($0)" }
        for name in names { fixture.memory.provide(DownloadFixture.content(100), as: name) }
        let session = try await queue.enqueue(.download(names.map { try RemotePath($0) }, from: "a", to: fixture.target))
        try await queue.start()
        _ = try await session.value
        await queue.shutdown()
        #expect(try fixture.names() == names.sorted())
    }

    @Test func keepsFileNamesThatAreNotUTF8() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let name = try RemotePath(bytes: [0x61, 0xFF, 0x62])
        fixture.memory.provide(Data("x".utf8), as: name.description)
        let session = try await queue.enqueue(.download([name], from: "a", to: fixture.target))
        #expect(try await queue.items(of: session.id).first?.source.lastComponent == FilePath(bytes: name.bytes).lastComponent)
        try await queue.start()
        _ = try await session.value
        #expect(try SourceIdentity(ofFileAt: fixture.target.pushing(FilePath(bytes: name.bytes))).size == 1)
        await queue.shutdown()
    }

    @Test(arguments: [true, false]) func sizeIsUnknownUntilReported(_ reportsSize: Bool) async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let request = try fixture.request("file")
        fixture.memory.provide(DownloadFixture.content(10_000), as: "file", reportsSize: reportsSize)
        let gate = fixture.memory.gate("file", atByte: 4_000)
        let session = try await queue.enqueue(request)
        try await queue.start()
        try await gate.reached()
        let status = try await session.status
        let (total, item) = (status.statistics.bytesTotal, try await queue.items(of: session.id)[0])
        #expect(total == (reportsSize ? 10_000 : nil) && item.bytesTotal == total)
        #expect(status.statistics.bytesDone == 4_000 && status.statistics.bytesSent == 4_000 && item.bytesDone == 4_000)
        #expect(status.phase == .transferring)
        #expect(try await queue.statistics().bytesDone == 4_000)
        gate.open()
        let end = try await session.value
        #expect(end.statistics.bytesTotal == 10_000 && end.statistics.bytesDone == 10_000 && end.statistics.filesUnsized == 0)
        await queue.shutdown()
    }

    @Test func totalSizeExcludesFailedFile() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.provide(DownloadFixture.content(500), as: "there")
        let session = try await queue.enqueue(
            .download([try RemotePath("missing"), try RemotePath("there")], from: "a", to: fixture.target))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .itemsFailed)
        let status = try await session.status
        #expect(status.statistics.bytesTotal == 500 && status.statistics.bytesDone == 500)
        #expect(status.statistics.filesFailed == 1 && status.failedItem == fixture.target.appending("missing"))
        #expect(try await queue.items(of: session.id).map(\.error?.code) == [.noSuchRemoteFile, nil])
        try await queue.retry(session.id)
        #expect(try await session.status.statistics.bytesTotal == nil)
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["there"])
        await queue.shutdown()
    }

    @Test func addsItemsDuringRun() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("one", atByte: 2_000)
        let session = try await queue.enqueue(fixture.request("one"))
        fixture.memory.provide(Data("two".utf8), as: "more/two")
        try await queue.start()
        try await gate.reached()
        try await queue.addItems([.remote(try RemotePath("more/two"))], to: .index(0))
        let upload = TransferItem(try fixture.queue.folder.file("local", size: 1))
        await #expect(throws: QueueError.self) { try await queue.addItems([upload], to: .id(session.id)) }
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        #expect(fixture.content("two") == Data("two".utf8))
        await queue.shutdown()
    }

    @Test func downloadsSmallFilesConcurrently() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let names = (0..<20).map { "file\($0)" }
        for name in names { fixture.memory.provide(Data("x".utf8), as: name) }
        let gate = fixture.memory.gate("file5")
        let session = try await queue.enqueue(.download(names.map { try RemotePath($0) }, from: "a", to: fixture.target))
        try await queue.start()
        try await gate.reached()
        gate.open()
        #expect(try await session.value.statistics.filesDone == 20)
        #expect(fixture.memory.peakRunningCount > 1)
        await queue.waitUntilIdle()
        #expect(try fixture.names() == names.sorted())
        await queue.shutdown()
    }

    // MARK: Existing files

    @Test func doesNotReplaceFilesByDefault() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let request = try fixture.request("file", "other")
        try Data("mine".utf8).write(to: URL(filePath: fixture.target.appending("file").string))
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        #expect(error?.code == .fileExists && error?.message.contains(fixture.target.appending("file").string) == true)
        #expect(error?.message.contains(fixture.target.appending("other").string) == false && fixture.content("file") == Data("mine".utf8))
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }

    @Test func doesNotReplaceFileCreatedDuringDownload() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 10_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        try Data("mine".utf8).write(to: URL(filePath: fixture.target.appending("file").string))
        gate.open()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .fileExists && fixture.content("file") == Data("mine".utf8))
        try await queue.remove(session.id)
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func appliesOverwritePolicyOfSession() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let time: Int64 = 1_500_000_000_000_000_000
        for policy in [OverwritePolicy.always, .different, .different, .newer] {
            fixture.memory.provide(DownloadFixture.content(10_000), as: "file", modificationTime: time)
            let session = try await queue.enqueue(
                .download([try RemotePath("file")], from: "a", to: fixture.target, options: SessionOptions(overwrite: policy)))
            try await queue.start()
            #expect(try await session.value.statistics.bytesDone == 10_000)
        }
        #expect(fixture.memory.attempts.map(\.bytesMoved) == [10_000, 0, 0, 0])
        fixture.memory.provide(DownloadFixture.content(10, seed: 9), as: "file", modificationTime: time + 1_000_000_000)
        let session = try await queue.enqueue(
            .download([try RemotePath("file")], from: "a", to: fixture.target, options: SessionOptions(overwrite: .newer)))
        #expect(try await session.value.statistics.bytesDone == 10 && fixture.content("file") == DownloadFixture.content(10, seed: 9))
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func keepsExistingFileIfConfigured() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        try Data("mine".utf8).write(to: URL(filePath: fixture.target.appending("file.txt").string))
        var sources: [FilePath] = []
        for policy in [OverwritePolicy.skip, .rename, .rename] {
            let session = try await queue.enqueue(fixture.request("file.txt", options: SessionOptions(overwrite: policy)))
            try await queue.start()
            #expect(try await session.value.statistics.bytesDone == 10_000)
            sources.append(try await queue.items(of: session.id)[0].source)
        }
        let names = ["file.txt", "file (1).txt", "file (2).txt"]
        #expect(sources == names.map { fixture.target.appending($0) })
        #expect(fixture.memory.attempts.map(\.bytesMoved) == [0, 10_000, 10_000])
        await queue.waitUntilIdle()
        #expect(try fixture.names() == names.sorted() && fixture.content("file.txt") == Data("mine".utf8))
        #expect(fixture.content(names[1]) == DownloadFixture.content(10_000))
        await queue.shutdown()
    }

    // MARK: Invalid requests

    @Test(arguments: ["../up", "/etc/up", "a/../b", "."]) func rejectsEscapingLocalNames(_ name: String) async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let request = try SessionRequest.download(
            items: [.remote(try RemotePath("file"), as: FilePath(name))], from: "a", to: fixture.target)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        #expect(error?.code == .invalidRequest && error?.message.contains(fixture.target.string) == true)
        await queue.shutdown()
    }

    @Test func rejectsNULInNames() throws {
        #expect(throws: TransferError.self) { try RemotePath("a\0b") }
        #expect(!FilePath("a\0../b").string.contains("\0"))
    }

    @Test func rejectsInvalidRequests() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let (file, remote) = (TransferItem(try fixture.queue.folder.file("local", size: 1)), TransferItem.remote(try RemotePath("x/file")))
        let sameLocalName = TransferItem.remote(try RemotePath("y/file"))
        let missing = fixture.target.appending("missing")
        let (unreadable, plainFile) = (QueueError.Code.unreadableItems, fixture.queue.folder.path.appending("local"))
        for (request, code, word) in [
            (try SessionRequest.download(items: [remote, sameLocalName], from: "a", to: fixture.target), .invalidRequest, "Two items"),
            (try .download(items: [remote], from: "a", to: missing), unreadable, missing.string),
            (try .download(items: [remote], from: "a", to: plainFile), unreadable, plainFile.string),
            (try .download(items: [file], from: "a", to: fixture.target), .invalidRequest, "local"),
            (try .upload(items: [remote], to: "a"), .invalidRequest, "file"),
            (try .download(items: [], from: "a", to: fixture.target), .invalidRequest, "no items"),
        ] {
            let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
            #expect(error?.code == code && error?.message.contains(word) == true, "\(String(describing: error))")
        }
        var folderless = try SessionRequest.download(items: [remote], from: "a", to: fixture.target)
        folderless.folder = nil
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(folderless) }
        #expect(error?.code == .invalidRequest)
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }
}
