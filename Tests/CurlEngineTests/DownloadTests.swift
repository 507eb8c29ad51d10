import CurlEngine
import Dispatch
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// A sink that records the written bytes, and that can hang or fail on request.
private final class RecordingSink: HTTPResponseSink {
    struct Full: Error {}

    private struct State {
        var head: HTTPResponseHead?
        var bytes: [UInt8] = []
    }

    private let (writeStarts, writeHasStarted) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
    private let state = Locked(State())
    private let gate: DispatchSemaphore?
    private let limit: Int
    private let acceptedStatus: Int

    /// - Parameters:
    ///   - gate: A semaphore that each write waits for, and then signals again.
    ///   - limit: The number of bytes after which writes fail.
    ///   - acceptedStatus: The only response status that the sink accepts.
    init(gate: DispatchSemaphore? = nil, limit: Int = .max, acceptedStatus: Int = 200) {
        self.gate = gate
        self.limit = limit
        self.acceptedStatus = acceptedStatus
    }

    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var head: HTTPResponseHead? { state.withLock { $0.head } }

    /// Waits until the first write has begun, even if that write hangs.
    func firstWrite() async {
        for await _ in writeStarts { return }
    }

    func accepts(_ head: HTTPResponseHead) throws -> Bool {
        state.withLock { $0.head = head }
        return head.status == acceptedStatus
    }

    func write(_ bytes: RawSpan) throws {
        writeHasStarted.yield()
        gate?.wait()
        gate?.signal()
        try state.withLock { state in
            try #require(state.head != nil, "the sink receives the head before the body")
            unsafe bytes.withUnsafeBytes { unsafe state.bytes.append(contentsOf: $0) }
            if state.bytes.count > limit { throw Full() }
        }
    }
}

/// Response bodies that are written to a sink.
@Suite(.timeLimit(.minutes(10))) struct DownloadTests {
    private static let text = makeText(3_200_000)

    private static func makeText(_ size: Int) -> String {
        String(repeating: "0123456789abcdef", count: size / 16) + "0123456789abcdef".prefix(size % 16)
    }

    private static func engine(threads: Int) -> CurlEngine {
        var configuration = CurlEngine.Configuration()
        configuration.downloadThreads = threads
        return CurlEngine(configuration: configuration)
    }

    @Test(arguments: [0, 1, 262_144, 3_200_000], [0, 1]) func writesWholeBody(size: Int, threads: Int) async throws {
        let text = Self.makeText(size)
        let server = try ScriptedServer { _, _ in [.answer(200, ["ETag": "\"1\""], body: text)] }
        let engine = Self.engine(threads: threads)
        let sink = RecordingSink()
        let progress = Locked<[Int64]>([])
        let response = try await engine.download(
            HTTPRequest(method: "GET", url: server.url()), into: sink, progress: { count in progress.withLock { $0.append(count) } })
        #expect(response.status == 200)
        #expect(response.body.isEmpty)
        #expect(sink.head?.headers["etag"] == "\"1\"")
        #expect(sink.bytes == Array(text.utf8))
        let reports = progress.withLock { $0 }
        #expect(reports == reports.sorted())
        #expect((reports.last ?? 0) == Int64(size))
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [0, 1]) func returnsBodyThatSinkRejects(threads: Int) async throws {
        let server = try ScriptedServer { _, _ in [.answer(404, body: "gone")] }
        let engine = Self.engine(threads: threads)
        let sink = RecordingSink()
        let response = try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: sink)
        #expect(response.status == 404)
        #expect(response.body == Array("gone".utf8))
        #expect(sink.bytes.isEmpty)
        await engine.shutdown()
        server.stop()
    }

    /// The first sink blocks the only writer thread or the only download thread.
    @Test(arguments: [0, 1]) func hangingSinkDoesNotDelayOtherRequests(threads downloadThreads: Int) async throws {
        let server = try ScriptedServer { _, _ in [.answer(200, body: Self.text)] }
        var configuration = CurlEngine.Configuration()
        configuration.writerThreads = 1
        configuration.downloadThreads = downloadThreads
        let engine = CurlEngine(configuration: configuration)
        let gate = DispatchSemaphore(value: 0)
        let hanging = RecordingSink(gate: gate)
        let task = Task { try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: hanging) }
        await hanging.firstWrite()
        let other = RecordingSink()
        let threads = WorkerThreads(limit: 1)
        _ = try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: other, writingOn: threads)
        #expect(other.bytes.count == Self.text.utf8.count)
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 200)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.signal()
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [0, 1]) func shutsDownWhileSinkHangs(threads: Int) async throws {
        let server = try ScriptedServer { _, _ in [.answer(200, body: Self.text)] }
        let engine = Self.engine(threads: threads)
        let gate = DispatchSemaphore(value: 0)
        let hanging = RecordingSink(gate: gate)
        let task = Task { try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: hanging) }
        await hanging.firstWrite()
        await engine.shutdown()
        await #expect(throws: CurlEngineError.self) { try await task.value }
        let count = hanging.bytes.count
        gate.signal()
        #expect(count == 0)
        server.stop()
    }

    /// The thread also remains usable after a failed download, and after the cancellation of a hanging download.
    @Test func downloadsReuseOneThread() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200, body: Self.text)] }
        let engine = Self.engine(threads: 1)
        let request = HTTPRequest(method: "GET", url: server.url())
        for _ in 0..<3 {
            let sink = RecordingSink()
            _ = try await engine.download(request, into: sink)
            #expect(sink.bytes.count == Self.text.utf8.count)
        }
        #expect(server.connectionCount == 1)
        await #expect(throws: RecordingSink.Full.self) { try await engine.download(request, into: RecordingSink(limit: 1)) }
        let gate = DispatchSemaphore(value: 0)
        let hanging = RecordingSink(gate: gate)
        let task = Task { try await engine.download(request, into: hanging) }
        await hanging.firstWrite()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.signal()
        let sink = RecordingSink()
        _ = try await engine.download(request, into: sink)
        #expect(sink.bytes.count == Self.text.utf8.count)
        await engine.shutdown()
        server.stop()
    }

    /// While sinks write nothing, the engine fills at most eight buffers of 256 KiB for a single sink. Several sinks get two buffers each,
    /// and share sixteen more.
    @Test(arguments: [(1, 8), (4, 2 * 4 + 16)]) func slowSinksLimitBufferedBytes(count: Int, buffers: Int) async throws {
        let size = 8 * 1024 * 1024
        let text = String(repeating: "x", count: size)
        let server = try ScriptedServer { _, _ in [.answer(200, body: text)] }
        var configuration = CurlEngine.Configuration()
        configuration.writerThreads = count
        configuration.downloadThreads = 0
        let engine = CurlEngine(configuration: configuration)
        let gate = DispatchSemaphore(value: 0)
        let sinks = (0..<count).map { _ in RecordingSink(gate: gate) }
        let request = HTTPRequest(method: "GET", url: server.url())
        let (starts, hasStarted) = AsyncStream.makeStream(of: Int.self)
        let received = Locked(0)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for (number, sink) in sinks.enumerated() {
                group.addTask {
                    try await engine.download(
                        request, into: sink,
                        pacing: { limit in
                            received.withLock { $0 += limit }
                            hasStarted.yield(number)
                            return Allowance(bytes: limit)
                        }
                    ).status
                }
            }
            var started: Set<Int> = []
            for await number in starts where started.insert(number).inserted && started.count == count { break }
            // Without a limit, all bytes of the other downloads would have arrived by the end of this download.
            _ = try await engine.download(request, into: RecordingSink(), writingOn: WorkerThreads(limit: 1))
            #expect(received.withLock { $0 } <= buffers * 256 * 1024)
            for _ in 0..<count { gate.signal() }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: count))
        #expect(sinks.allSatisfy { $0.bytes.count == size })
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [0, 1]) func requestFailsWithErrorOfSink(threads: Int) async throws {
        let server = try ScriptedServer { _, _ in [.answer(200, body: Self.text)] }
        let engine = Self.engine(threads: threads)
        await #expect(throws: RecordingSink.Full.self) {
            try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: RecordingSink(limit: 100_000))
        }
        // The sink's error is reported even if it occurs after the whole response has arrived.
        await #expect(throws: RecordingSink.Full.self) {
            try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: RecordingSink(limit: Self.text.utf8.count - 1))
        }
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [0, 1]) func writesBytesThatArrivedBeforeConnectionBroke(threads: Int) async throws {
        let server = try ScriptedServer { _, _ in [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"), .close] }
        let engine = Self.engine(threads: threads)
        let sink = RecordingSink()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.download(HTTPRequest(method: "GET", url: server.url()), into: sink)
        }
        #expect(error?.kind == .connectionLost)
        #expect(sink.bytes == Array("12345".utf8))
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [0, 1]) func pacesDownload(threads: Int) async throws {
        let text = Self.makeText(100_000)
        let server = try ScriptedServer { _, _ in [.answer(200, body: text)] }
        let engine = Self.engine(threads: threads)
        let sink = RecordingSink()
        let granted = Locked((calls: 0, bytes: 0))
        _ = try await engine.download(
            HTTPRequest(method: "GET", url: server.url()), into: sink,
            pacing: { limit in
                granted.withLock { granted in
                    granted.calls += 1
                    guard granted.calls.isMultiple(of: 2) else { return Allowance(bytes: 0, retryAfter: .milliseconds(1)) }
                    let bytes = min(limit, 5000)
                    granted.bytes += bytes
                    return Allowance(bytes: bytes)
                }
            })
        #expect(sink.bytes == Array(text.utf8))
        #expect(granted.withLock { $0.bytes } == 100_000)
        #expect(granted.withLock { $0.calls } >= 40)
        await engine.shutdown()
        server.stop()
    }
}
