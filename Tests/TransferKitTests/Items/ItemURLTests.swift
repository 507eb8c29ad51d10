import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Upload URLs and creation URLs are secret, so they must not appear in descriptions, error messages or the quarantine.
@Suite struct ItemURLTests {
    private static let url = "https://upload.example.com/files/capability-4711"
    private let fixture: QueueFixture
    private let attempts = Locked<[FileAttempt]>([])

    init() throws {
        fixture = try QueueFixture()
    }

    private func open() async throws -> TransferQueue {
        try await fixture.open(transports: [AttemptRecordingTransport(memory: fixture.memory, attempts: attempts)])
    }

    @Test func passesURLToTransportAfterRestart() async throws {
        var queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        var items = ["1", "2", "3"].map { TransferItem(fixture.folder.path.appending($0)) }
        for name in ["1", "2", "3"] { _ = try fixture.folder.file(name, size: 10) }
        items[1].uploadURL = Self.url
        // The last two items follow a folder, so the database keeps them in another table.
        var blob = TransferItem.data(Data("x".utf8), as: try RemotePath("blob"))
        blob.uploadURL = Self.url + "-blob"
        let folder = fixture.folder.path.appending("empty")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        let session = try await queue.enqueue(.upload(items: items + [TransferItem(folder), blob, items[2]], to: "a"))
        await queue.shutdown()
        queue = try await open()
        try await queue.addItems([items[1]], to: .id(session.id))
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        let given = attempts.withLock { $0 }.sorted { $0.origin.item < $1.origin.item }.map(\.options.uploadURL)
        #expect(given == [nil, Self.url, nil, Self.url + "-blob", nil, Self.url])
        await queue.shutdown()
    }

    @Test func passesCreationURLToTransportAfterRestart() async throws {
        var queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        var items = ["1", "2", "3"].map { TransferItem(fixture.folder.path.appending($0)) }
        for name in ["1", "2", "3"] { _ = try fixture.folder.file(name, size: 10) }
        items[1].creationURL = Self.url + "-item"
        let folder = fixture.folder.path.appending("empty")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        var blob = TransferItem.data(Data("x".utf8), as: try RemotePath("blob"))
        blob.creationURL = Self.url + "-blob"
        items[2].uploadURL = Self.url + "-existing"
        let options = SessionOptions(creationURL: Self.url)
        let session = try await queue.enqueue(
            .upload(items: [items[0], items[1], TransferItem(folder), blob, items[2]], to: "a", options: options))
        await queue.shutdown()
        queue = try await open()
        try await queue.addItems([items[1]], to: .id(session.id))
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        let given = attempts.withLock { $0 }.sorted { $0.origin.item < $1.origin.item }.map(\.options.creationURL)
        #expect(given == [Self.url, Self.url + "-item", Self.url + "-blob", Self.url, Self.url + "-item"])
        await queue.shutdown()
    }

    @Test func rejectsInvalidCreationURLs() async throws {
        let queue = try await fixture.openWithAccounts()
        let path = try fixture.folder.file("1", size: 10)
        var items = [TransferItem(path), TransferItem(path), TransferItem(fixture.folder.path)]
        items[0].creationURL = "https://example.com/4711 b"
        items[1].creationURL = Self.url
        items[1].uploadURL = Self.url
        items[2].creationURL = Self.url
        for (item, words) in zip(items, ["a space", "both an upload URL and a creation URL", "is a folder"]) {
            let error = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "a")) }
            #expect(error?.message.contains(words) == true && error?.message.contains("4711") == false)
        }
        await queue.shutdown()
    }

    /// The server's upload may contain bytes of an earlier version of the file, so the transport must know about the restart.
    @Test func transportLearnsThatFileRestarts() async throws {
        let queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let session = try await queue.enqueue(try fixture.upload("1", options: SessionOptions(onSourceChange: .restart)))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        _ = try fixture.folder.file("1", size: 7_000)
        fixture.clock.advance(by: .seconds(1))
        #expect(try await session.value.state == .completed)
        #expect(attempts.withLock { $0 }.map(\.isRestarted) == [false, true])
        await queue.shutdown()
    }

    /// From the first checkpoint on, the uploaded bytes belong to the current version of the file, even at the next endpoint.
    @Test func reportsRestartUntilFirstCheckpoint() async throws {
        let queue = try await open()
        try await queue.save(Account("a", endpoints: ["x", "y"].map { fixture.memory.endpoint(host: $0) }))
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 2), onSourceChange: .restart)
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        _ = try fixture.folder.file("1", size: 7_000)
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        fixture.memory.faults.append(.fail(TransferError(.transient, .serverError, "The server failed.")))
        fixture.clock.advance(by: .seconds(1))
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await session.value.state == .completed)
        let recorded = attempts.withLock { $0 }
        #expect(recorded.map(\.endpoint.address) == ["x", "x", "x", "y"].map { "memory://\($0)/" })
        #expect(recorded.map(\.isRestarted) == [false, true, false, false])
        await queue.shutdown()
    }

    @Test func hidesURLsInDescriptionsAndQuarantine() async throws {
        let queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        var item = TransferItem(try fixture.folder.file("1", size: 10))
        item.uploadURL = Self.url
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        var shown = ""
        dump(item, to: &shown)
        dump(AttemptOptions(uploadURL: Self.url, creationURL: Self.url), to: &shown)
        dump(SessionOptions(creationURL: Self.url), to: &shown)
        var created = TransferItem(fixture.folder.path)
        created.creationURL = Self.url
        dump(created, to: &shown)
        dump(try await queue.items(of: session.id), to: &shown)
        shown += "\(item) \(String(reflecting: AttemptOptions(uploadURL: Self.url)))"
        #expect(item.uploadURL == Self.url && !shown.contains("4711"))
        await queue.shutdown()
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        try await store.commit([.quarantine(1, "for a test")])
        let rows = try await store.quarantined()
        #expect(rows.count == 1 && !rows[0].content.contains("4711"))
        await store.close()
    }

    @Test(arguments: ["", "https://example.com/a b", "https://example.com/\n"])
    func rejectsInvalidURLs(_ url: String) async throws {
        let queue = try await fixture.openWithAccounts()
        var item = TransferItem(try fixture.folder.file("1", size: 10))
        item.uploadURL = url
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "a")) }
        #expect(error?.code == .invalidRequest && (url.isEmpty || error?.message.contains(url) == false))
        item = TransferItem(fixture.folder.path)
        item.uploadURL = Self.url
        let refusal = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "a")) }
        #expect(refusal?.message.contains("folder") == true && refusal?.message.contains("4711") == false)
        await queue.shutdown()
    }

    @Test func rejectsInvalidOptions() async throws {
        let queue = try await fixture.openWithAccounts()
        for options in [
            SessionOptions(segmentsPerFile: 0), SessionOptions(segmentsPerFile: 65), SessionOptions(chunkSize: 0),
            SessionOptions(headers: ["": "x"]),
            SessionOptions(headers: ["X Y": "x"]), SessionOptions(headers: ["Ä": "x"]), SessionOptions(headers: ["X": "a\r\nY: b"]),
            SessionOptions(headers: ["AuthoriZation": "Bearer x"]),
        ] {
            let request = try fixture.upload("file", options: options)
            let error = await #expect(throws: QueueError.self, "\(options)") { try await queue.enqueue(request) }
            #expect(error?.code == .invalidRequest)
        }
        let good = SessionOptions(headers: ["X-Tier_1": "a\tb c"], chunkSize: 1, segmentsPerFile: 64)
        try await queue.enqueue(fixture.upload("file", options: good))
        await queue.shutdown()
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        #expect(try await store.sessions([1]).first?.options == good)
        await store.close()
    }

    @Test func passesUpdatedContextToNextFile() async throws {
        let queue = try await open()
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        var request = try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 1))
        request.context = Data("1".utf8)
        let gate = fixture.memory.gate("1", atByte: 1_000)
        let session = try await queue.enqueue(request)
        try await queue.start()
        try await gate.reached()
        try await queue.update(session.id, SessionUpdate(context: .set(Data("2".utf8))))
        // Waits until the run has the new context.
        while await queue.live[1]?.context != Data("2".utf8) { await Task.yield() }
        gate.open()
        _ = try await session.value
        #expect(attempts.withLock { $0 }.map { $0.origin.context.map { String(decoding: $0, as: UTF8.self) } } == ["1", "2"])
        await queue.shutdown()
    }
}
