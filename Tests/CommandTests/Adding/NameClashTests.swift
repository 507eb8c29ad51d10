import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

/// The queue rejects items whose remote names clash if a file would be lost, or if the first endpoint would reject the second item.
@Suite struct NameClashTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ addresses: [String]) async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        let queue = try await TransferQueue(
            storage: .folder(folder.path.appending("store")), transports: [TUSTransport(), SFTPTransport(), HTTPTransport()],
            configuration: configuration)
        try await queue.save(Account("a", endpoints: addresses.map(endpoint)))
        return queue
    }

    private func endpoint(_ address: String) -> Endpoint {
        let transports: [String: TransportID] = ["sftp": .sftp, "https": .tus]
        return Endpoint(transport: transports[String(address.prefix { $0 != ":" })] ?? .http, address: address)
    }

    private func file(_ name: String) throws -> FilePath {
        let path = folder.path.pushing(FilePath(name))
        try FileManager.default.createDirectory(atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        return try folder.file(name, size: 10)
    }

    /// Returns the message of the error with which the queue rejects the items; nil if the queue accepts them.
    private func rejection(
        _ queue: TransferQueue, _ items: [TransferItem], _ options: SessionOptions = SessionOptions()
    ) async throws -> String? {
        do throws(any Error) {
            try await queue.enqueue(.upload(items: items, to: "a", options: options))
            return nil
        } catch {
            let error = try #require(error as? QueueError)
            #expect(error.code == .invalidRequest)
            return error.message
        }
    }

    private static let policies: [(String, OverwritePolicy, Bool)] = [
        ("sftp://me@one.example/in/", .never, true), ("sftp://me@one.example/in/", .skip, true),
        ("sftp://me@one.example/in/", .always, true), ("sftp://me@one.example/in/", .different, true),
        ("sftp://me@one.example/in/", .newer, true), ("sftp://me@one.example/in/", .rename, false),
        ("https+put://one.example/", .never, true), ("https+put://one.example/{name}", .never, true),
        ("https+put://one.example/{transfer}/{name}", .never, false), ("https+form://one.example/", .never, true),
        ("https://one.example/", .never, false),
    ]

    @Test(arguments: policies)
    func rejectsNameClashesUnlessBothFilesAreKept(address: String, policy: OverwritePolicy, isRejected: Bool) async throws {
        let queue = try await open([address])
        let items = try ["one/clip.mov", "two/clip.mov"].map { TransferItem(try file($0)) }
        let options = SessionOptions(overwrite: policy)
        let message = try await rejection(queue, items, options)
        #expect((message != nil) == isRejected, "\(message ?? "")")
        if let message {
            for name in ["one/clip.mov", "two/clip.mov", "one.example"] { #expect(message.contains(name), "\(message)") }
        }
        // Two sessions that are added in one call clash in the same way.
        let sessions = try items.map { try SessionRequest.upload(items: [$0], to: "a", options: options) }
        if isRejected {
            await #expect(throws: QueueError.self) { try await queue.enqueue(sessions) }
            #expect(await queue.status().sessions == 0)
        } else {
            try await queue.enqueue(sessions)
        }
        // Different names don't clash.
        let distinct = try [items[0], TransferItem(file("two/clip.mov"), as: RemotePath("other.mov"))]
        #expect(try await rejection(queue, distinct, options) == nil)
        await queue.shutdown()
    }

    @Test func checksNamesAtFallbackEndpoints() async throws {
        let items = try ["one/clip.mov", "two/clip.mov"].map { TransferItem(try file($0)) }
        for (address, isRejected) in [("sftp://me@two.example/", false), ("https+put://two.example/", true)] {
            let queue = try await open(["https://one.example/", address])
            #expect((try await rejection(queue, items) != nil) == isRejected)
            await queue.shutdown()
        }
    }

    /// In-memory data and streams have no path, so the queue can't recognize that two items are the same.
    @Test func rejectsDataWithNameOfOtherItem() async throws {
        let queue = try await open(["https+put://one.example/"])
        let name = try RemotePath("clip.mov")
        let data = TransferItem.data(Data("x".utf8), as: name)
        for other in [data, TransferItem(try file("clip.mov"))] {
            let message = try await rejection(queue, [data, other])
            #expect(message?.contains("\"clip.mov\"") == true, "\(message ?? "")")
        }
        let spool = folder.path.appending("store").appending("spool").string
        #expect(((try? FileManager.default.contentsOfDirectory(atPath: spool)) ?? []) == [])
        await queue.shutdown()
    }

    @Test func acceptsEqualNamesIfNoFileIsLost() async throws {
        let queue = try await open(["https+put://one.example/"])
        let reel = try file("one/reel")
        let same = folder.path.pushing("one/../one/./reel")
        #expect(try await rejection(queue, [TransferItem(reel), TransferItem(same)]) == nil)
        _ = try file("one/stills/1")
        let stills = ["one/stills", "one/../one/stills"].map { TransferItem(folder.path.pushing(FilePath($0))) }
        #expect(try await rejection(queue, stills) == nil)
        #expect(try await rejection(queue, [stills[0], TransferItem(try file("three/stills"))]) != nil)
        // The folder contains the same file under the same remote name, so no file is lost.
        #expect(
            try await rejection(queue, [stills[0], TransferItem(folder.path.pushing("one/stills/1"), as: RemotePath("stills/1"))]) == nil)
        // `stills2/1` begins with the name of the folder `stills`, but is not in this folder.
        #expect(try await rejection(queue, [stills[0], TransferItem(reel, as: RemotePath("stills2/1"))]) == nil)
        var signed = TransferItem(try file("two/reel"))
        signed.uploadURL = "https://one.example/place"
        #expect(try await rejection(queue, [TransferItem(reel), signed]) == nil)
        await queue.shutdown()
    }

    private static let folderPolicies: [(String, OverwritePolicy, Bool)] = [
        ("https+put://one.example/", .never, true), ("https+form://one.example/", .never, true),
        ("https+put://one.example/{transfer}/{path}", .never, false), ("https://one.example/", .never, false),
        ("sftp://me@one.example/in/", .always, true), ("sftp://me@one.example/in/", .skip, true),
        // The second file with the same name fails (`never`) or gets another name (`rename`), so no file is lost.
        ("sftp://me@one.example/in/", .never, false), ("sftp://me@one.example/in/", .rename, false),
    ]

    /// The folders contain files with the same name, so one file could replace the other.
    @Test(arguments: folderPolicies) func rejectsFoldersThatMerge(address: String, policy: OverwritePolicy, isRejected: Bool) async throws {
        let queue = try await open([address])
        let options = SessionOptions(overwrite: policy)
        _ = try (file("one/clips/clip.mov"), file("two/clips/clip.mov"))
        let folders = ["one/clips", "two/clips"].map { TransferItem(folder.path.pushing(FilePath($0))) }
        let inside = TransferItem(try file("three/clip.mov"), as: try RemotePath("clips/clip.mov"))
        let deep = TransferItem(folder.path.pushing("two/clips"), as: try RemotePath("clips/a/b"))
        for (items, words) in [
            (folders, ["one/clips", "two/clips", "\"clips\""]),
            ([folders[0], inside], ["one/clips", "three/clip.mov", "\"clips/clip.mov\""]),
            ([inside, folders[0]], ["one/clips", "three/clip.mov", "\"clips/clip.mov\""]),
            ([deep, folders[0]], ["one/clips", "\"clips/a/b\""]),
        ] {
            let message = try await rejection(queue, items, options)
            #expect((message != nil) == isRejected, "\(message ?? "")")
            for word in words + ["one.example", "remote name"] { #expect(message?.contains(word) ?? true, "\(message ?? "")") }
            // The queue also compares the names of items that are added later.
            let session = try await queue.enqueue(.upload(items: [items[0]], to: "a", options: options))
            if isRejected {
                await #expect(throws: QueueError.self) { try await queue.addItems([items[1]], to: .id(session.id)) }
            } else {
                try await queue.addItems([items[1]], to: .id(session.id))
            }
        }
        let distinct = [folders[0], TransferItem(folder.path.pushing("two/clips"), as: try RemotePath("clips2"))]
        #expect(try await rejection(queue, distinct, options) == nil)
        await queue.shutdown()
    }

    @Test func checksItemsAddedLater() async throws {
        let queue = try await open(["https+put://one.example/"])
        let session = try await queue.enqueue(.upload([file("one/reel")], to: "a"))
        let other = TransferItem(try file("two/reel"))
        let error = try await #require(throws: QueueError.self) { try await queue.addItems([other], to: .id(session.id)) }
        #expect(error.code == .invalidRequest && error.message.contains("two/reel"), "\(error.message)")
        #expect(try await queue.items(of: session.id).count == 1)
        try await queue.addItems([TransferItem(file("two/reel"), as: RemotePath("reel2"))], to: .id(session.id))
        #expect(try await queue.items(of: session.id).count == 2)
        await queue.shutdown()
    }

    /// A request with a known deduplication key returns the existing session, even if the remote names in the request now clash.
    @Test func findsExistingSessionByKey() async throws {
        let queue = try await open(["https://one.example/"])
        var request = try SessionRequest.upload([file("one/reel"), file("two/reel")], to: "a")
        request.deduplicationKey = "key"
        let id = try await queue.enqueue(request).id
        try await queue.save(Account("a", endpoints: [endpoint("https+put://one.example/")]))
        let again = {
            var again = request; again.id = SessionID(); return again
        }()
        #expect(try await queue.enqueue(again).id == id)
        request.deduplicationKey = "other"
        await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        await queue.shutdown()
    }
}
