import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit

/// The effects of queue operations on the requests that a server receives.
@Suite struct QueueInteropTests {
    private let interop: InteropFixture
    private let server: TUSLoopbackServer

    init() throws {
        interop = try InteropFixture()
        server = interop.loopbackServer()
    }

    /// The size of a file whose upload at the rate of ``slowly`` takes long enough for a test to operate on its session.
    private static let large = 12 << 20
    /// Options for a session that is so slow that a test can interrupt it. The test then applies ``atFullSpeed``.
    private static let slowly = SessionOptions(rateLimit: 256 << 10)
    private static let atFullSpeed = SessionUpdate(rateLimit: .unlimited)

    private func openQueue() async throws -> TransferQueue {
        try await interop.openQueue(try await server.start().absoluteString)
    }

    private func close(_ queue: TransferQueue) async {
        await queue.shutdown()
        await server.stop()
    }

    /// The requests of a file's only upload.
    private func requests(_ name: String) throws -> [LoopbackStatistics.Request] {
        let uploads = server.statistics.uploads.filter { $0.filename == name }
        #expect(uploads.count == 1, "\(name) was created once")
        return try #require(uploads.first).requests
    }

    /// Checks that the upload of a file was interrupted the given number of times, and resumed at the server's offset each time.
    private func checkResumed(_ name: String, times: Int) throws {
        let requests = try requests(name)
        #expect(requests.map(\.method) == ["POST", "PATCH"] + Array(repeating: ["HEAD", "PATCH"], count: times).joined())
        for (head, patch) in zip(requests, requests.dropFirst()) where head.method == "HEAD" { #expect(patch.offset == head.offset) }
        #expect(requests.dropFirst(2).allSatisfy { $0.offset ?? 0 > 0 }, "the upload resumed and did not restart")
    }

    @Test func runNowPreemptsSessionWhichResumesLater() async throws {
        let queue = try await openQueue()
        let events = queue.events
        let large = try await queue.enqueue(try .upload([interop.file("large", size: Self.large)], to: "real", options: Self.slowly))
        let waiting = try await queue.enqueue(try .upload([interop.file("waiting", size: 1_000)], to: "real"))
        let urgent = try await queue.enqueue(try .upload([interop.file("urgent", size: 3_000_000)], to: "real"))
        try await queue.start()
        await large.waitUntilSent(1 << 20)
        try await urgent.run()
        try await queue.update(large.id, Self.atFullSpeed)
        var completed: [SessionID] = []
        for await event in events {
            if case .completed(let id) = event.kind { completed.append(id) }
            if completed.count == 3 { break }
        }
        #expect(completed == [urgent.id, large.id, waiting.id])
        for session in [large, waiting, urgent] { try await interop.checkContent(of: session, on: server) }
        try checkResumed("large", times: 1)
        #expect(server.statistics.bytesStored == Int64(Self.large + 3_001_000), "no byte is stored twice")
        await close(queue)
    }

    @Test func heldSessionFreesSlotAndResumesWhenReleased() async throws {
        let queue = try await openQueue()
        let large = try await queue.enqueue(try .upload([interop.file("large", size: Self.large)], to: "real", options: Self.slowly))
        let next = try await queue.enqueue(try .upload([interop.file("next", size: 1_000)], to: "real"))
        try await queue.start()
        await large.waitUntilSent(1 << 20)
        try await large.hold()
        #expect(try await next.value.state == .completed)
        #expect(try await large.status.state == .held)
        try await queue.update(large.id, Self.atFullSpeed)
        try await large.release()
        #expect(try await large.value.state == .completed)
        for session in [large, next] { try await interop.checkContent(of: session, on: server) }
        try checkResumed("large", times: 1)
        #expect(server.statistics.bytesStored == Int64(Self.large + 1_000))
        await close(queue)
    }

    @Test func cancelledSessionResumesWhenRetried() async throws {
        let queue = try await openQueue()
        let large = try await queue.enqueue(try .upload([interop.file("large", size: Self.large)], to: "real", options: Self.slowly))
        try await queue.start()
        await large.waitUntilSent(1 << 20)
        try await large.cancel()
        await queue.waitUntilIdle()
        #expect(try await large.status.state == .cancelled)
        #expect(server.statistics.uploads.map(\.isComplete) == [false], "the server keeps the incomplete upload")
        try await queue.update(large.id, Self.atFullSpeed)
        try await large.retry()
        #expect(try await large.value.state == .completed)
        try await interop.checkContent(of: large, on: server)
        try checkResumed("large", times: 1)
        #expect(server.statistics.bytesStored == Int64(Self.large), "no byte is stored twice")
        await close(queue)
    }

    @Test func pausedSessionKeepsSlot() async throws {
        let queue = try await openQueue()
        let events = queue.events
        let large = try await queue.enqueue(try .upload([interop.file("large", size: Self.large)], to: "real", options: Self.slowly))
        let next = try await queue.enqueue(try .upload([interop.file("next", size: 1_000)], to: "real"))
        try await queue.start()
        await large.waitUntilSent(1 << 20)
        #expect(try await large.pause() == .paused)
        // The next session does not get the slot, even after it is held and released.
        try await next.hold()
        try await next.release()
        #expect(try await next.status.state == .waiting)
        #expect(await queue.status().paused == 1)
        try await queue.update(large.id, Self.atFullSpeed)
        try await large.resume()
        #expect(try await next.value.state == .completed)
        var order: [String] = []
        for await event in events {
            if case .completed(let id) = event.kind { order.append(id == large.id ? "large completed" : "next completed") }
            if case .didActivate(let id) = event.kind { order.append(id == large.id ? "large activated" : "next activated") }
            if order.last == "next completed" { break }
        }
        #expect(order == ["large activated", "large completed", "next activated", "next completed"])
        for session in [large, next] { try await interop.checkContent(of: session, on: server) }
        try checkResumed("large", times: 1)
        #expect(server.statistics.bytesStored == Int64(Self.large + 1_000))
        await close(queue)
    }

    @Test func sharesConnectionsAndStartsFilesInOrder() async throws {
        let port = try #require(try await server.start().port)
        let relay = try CuttingRelay(to: port)
        defer { relay.stop() }
        let queue = try await interop.openQueue("http://127.0.0.1:\(relay.port)/files/")
        let inFlight = 4
        let session = try await queue.enqueue(
            try .upload(
                (0..<60).map { try interop.file("file-\($0)", size: 20_000 + $0) }, to: "real",
                options: SessionOptions(filesInFlight: inFlight)))
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 60)
        try await interop.checkContent(of: session, on: server)
        #expect(relay.connectionCount <= inFlight)
        #expect(server.statistics.requests == ["OPTIONS": 1, "POST": 60])
        let numbers = server.statistics.uploads.compactMap { $0.filename?.split(separator: "-").last.flatMap { Int($0) } }
        #expect(numbers.sorted() == Array(0..<60))
        // A file can overtake only files that are in flight at the same time, so it moves by fewer than `inFlight` positions.
        for (position, number) in numbers.enumerated() { #expect(abs(position - number) < inFlight) }
        await close(queue)
    }

    @Test func keepsFolderStructure() async throws {
        let queue = try await openQueue()
        let folder = interop.folder.appending(path: "reel")
        try FileManager.default.createDirectory(at: folder.appending(path: "sub/empty"), withIntermediateDirectories: true)
        let names = ["reel/a", "reel/sub/b", "reel/sub/c d,e", "reel/zero"]
        for (index, name) in names.enumerated() { _ = try interop.file(name, size: name == "reel/zero" ? 0 : 300_000 * index + 7) }
        let session = try await queue.enqueue(try .upload([FilePath(folder.path)], to: "real"))
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 4)
        try await interop.checkContent(of: session, on: server)
        let paths = try server.statistics.uploads.map { try metadata(of: $0.id)["relativePath"] }
        #expect(Set(paths) == Set(names))
        await close(queue)
    }

    private func metadata(of id: String) throws -> [String: String] {
        let file = interop.folder.appending(path: "server").appending(path: "\(id).json")
        let information = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
        return information?["metadata"] as? [String: String] ?? [:]
    }

    @Test func uploadsDataItems() async throws {
        let queue = try await openQueue()
        let contents = [Data(), Data("x".utf8), try interop.content(interop.file("model", size: 5 << 20))]
        let items = try contents.enumerated().map { TransferItem.data($1, as: try RemotePath("data-\($0)")) }
        let session = try await queue.enqueue(try .upload(items: items, to: "real"))
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 3)
        for (index, content) in contents.enumerated() {
            let file = try #require(server.storedFiles(named: "data-\(index)").first)
            #expect(try interop.content(file) == content)
        }
        await close(queue)
    }

    @Test func transfersFilesDespiteHighLatency() async throws {
        let port = try #require(try await server.start().port)
        let relay = try CuttingRelay(to: port, delay: .milliseconds(200))
        defer { relay.stop() }
        relay.cut(afterBytes: 3 << 20)
        let queue = try await interop.openQueue("http://127.0.0.1:\(relay.port)/files/")
        let small = try await queue.enqueue(try .upload((0..<12).map { try interop.file("file-\($0)", size: 30_000) }, to: "real"))
        let large = try await queue.enqueue(try .upload([interop.file("large", size: 8 << 20)], to: "real"))
        try await queue.start()
        #expect(try await small.value.statistics.filesDone == 12)
        #expect(try await large.value.state == .completed)
        #expect(relay.hasCutAll)
        for session in [small, large] { try await interop.checkContent(of: session, on: server) }
        // The interrupted PATCH causes both HEAD requests: the failed attempt reads the offset, and so does the next attempt.
        #expect(server.statistics.requests == ["OPTIONS": 1, "POST": 13, "HEAD": 2, "PATCH": 2])
        #expect(server.statistics.bytesStored == 8 << 20 + 12 * 30_000)
        await close(queue)
    }
}
