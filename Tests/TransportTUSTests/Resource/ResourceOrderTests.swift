import Dispatch
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The order of requests for one upload. The client must not request the offset while it sends content, because the server may then abort
/// the running request.
@Suite(.timeLimit(.minutes(1))) struct ResourceOrderTests {
    private static let size = 300_000
    /// Larger than all buffers on the network path.
    private static let largeSize = 32 << 20

    /// Finds requests that arrive while a request with content is running.
    private final class Monitor: Sendable {
        private let running = Locked(0)
        private let overlapping = Locked<[String]>([])
        private let ended = DispatchSemaphore(value: 0)

        func begin() { running.withLock { $0 += 1 } }

        func end() {
            running.withLock { $0 -= 1 }
            ended.signal()
        }

        /// Checks a request without content. If the client has just closed the connection of the running request, the check waits until
        /// the server has noticed this. The time limit matters only if the client sends both requests in parallel.
        func check(_ request: ReceivedRequest) {
            guard running.withLock({ $0 }) > 0, ended.wait(timeout: .now() + .seconds(10)) == .timedOut else { return }
            overlapping.withLock { $0.append(request.method) }
        }

        var violations: [String] { overlapping.withLock { $0 } }
    }

    private static func state(_ isComplete: Bool, _ version: String, offset: Int? = nil) -> ServerStep {
        let line = offset.map { "Upload-Offset: \($0)\r\n" } ?? "Content-Length: 0\r\n"
        return .raw("HTTP/1.1 \(offset == nil ? 200 : 204) OK\r\n\(ResourceServer.completeness(isComplete, version))\(line)\r\n")
    }

    /// The attempt is cancelled, as for a pause, while a request with content is running. The next attempt begins immediately.
    @Test(arguments: ["3", "8", "10"], ["POST", "PATCH"]) func requestsOffsetAfterPause(version: String, method: String) async throws {
        let monitor = Monitor()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let isFirst = Locked(true)
        var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in
            if request.method == "HEAD" { return [.call { monitor.check(request) }, Self.state(false, version, offset: 1000)] }
            let stops =
                request.method == method
                && isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
            let continueSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
            if stops {
                return [.call { monitor.begin() }, .raw(ResourceServer.interim(version))] + continueSteps
                    + [.read(1000), .call { begin.yield() }, .end { monitor.end() }]
            }
            if request.method == "POST" { return [.answer(201, ["Location": "/up/1"])] }
            return continueSteps + [.read(nil), Self.state(true, version)]
        }
        if method == "PATCH" { upload.options.creation = .separate }
        let running = Task { [upload] in try await upload.run() }
        for await _ in begun { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(monitor.violations.isEmpty)
        #expect(upload.methods == (method == "POST" ? ["POST", "HEAD", "PATCH"] : ["POST", "PATCH", "HEAD", "PATCH"]))
        #expect(upload.requests.last?.headers["upload-offset"] == "1000")
        await upload.end()
    }

    /// The attempt is cancelled before the server announced an upload, when the server has only part of the content. The next attempt
    /// restarts the file.
    @Test(arguments: ["3", "8", "10"], [size, 3 << 20]) func restartsAfterPauseBeforeAnnouncement(version: String, size: Int) async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        var upload = try TestUpload.resource(size: size, version: version) { request, number in
            let continueSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
            if number == 0 { return continueSteps + [.read(1000), .call { begin.yield() }, .silence] }
            return continueSteps + [.raw(ResourceServer.interim(version)), .read(nil), Self.state(true, version)]
        }
        // The first attempt may send 2,000 bytes.
        let remainingAllowance = Locked<Int?>(2000)
        upload.allowance = { limit in
            remainingAllowance.withLock { left in
                guard let rest = left else { return Allowance(bytes: limit) }
                let bytes = min(rest, limit)
                left = rest - bytes
                return Allowance(bytes: bytes, retryAfter: .milliseconds(10))
            }
        }
        let running = Task { [upload] in try await upload.run() }
        for await _ in begun { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        remainingAllowance.withLock { $0 = nil }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        await upload.end()
    }

    /// The server rejects the request before it has the whole content. The client ends the request before it requests the offset.
    @Test(arguments: ["3", "8", "10"]) func requestsOffsetAfterEarlyRejection(version: String) async throws {
        let monitor = Monitor()
        var upload = try TestUpload.resource(size: Self.largeSize, version: version) { request, number in
            switch (request.method, number) {
            case ("POST", _): return [.answer(201, ["Location": "/up/1"])]
            case ("HEAD", _): return [.call { monitor.check(request) }, Self.state(false, version, offset: 1000)]
            case (_, 1):
                return [
                    .call { monitor.begin() }, .read(1000), .raw("HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n"),
                    .end { monitor.end() },
                ]
            default: return [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(nil), Self.state(true, version)]
            }
        }
        upload.options.creation = .separate
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(monitor.violations.isEmpty)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        await upload.end()
    }

    /// Interim responses report offsets, limits, another URL and another version. None of them makes the client request the offset.
    @Test(arguments: ["3", "8", "10"]) func doesNotRequestOffsetDuringProgress(version: String) async throws {
        let saved = DispatchSemaphore(value: 0)
        var upload = try TestUpload.resource(size: Self.largeSize, version: version) { request, _ in
            guard request.method == "PATCH" else {
                return request.method == "POST" ? [.answer(201, ["Location": "/up/1"])] : [Self.state(false, version, offset: 0)]
            }
            let progress = [1 << 20, 2 << 20, 3 << 20].flatMap { offset -> [ServerStep] in
                [
                    .read(1 << 20), .raw(ResourceServer.interim(version, "Upload-Limit: max-append-size=99999999, max-age=60\r\n")),
                    .raw(ResourceServer.interim(version, "Location: /up/2\r\n")), .raw(ResourceServer.interim("7", "Upload-Offset: 5\r\n")),
                    .raw(ResourceServer.interim(version, "Upload-Offset: \(offset)\r\n")), .call { saved.wait() },
                ]
            }
            return progress + [.read(nil), Self.state(true, version)]
        }
        upload.options.creation = .separate
        let observer = Task { [upload] in
            var last: Int64 = 0
            for await checkpoint in upload.recorder.saved where checkpoint.confirmed > last {
                last = checkpoint.confirmed
                saved.signal()
            }
        }
        _ = try await upload.run()
        upload.recorder.end()
        await observer.value
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }
}
