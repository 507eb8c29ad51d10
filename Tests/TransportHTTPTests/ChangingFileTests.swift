import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

/// Files that change on the server during a download, and servers that hide the change.
@Suite struct ChangingFileTests {
    /// The response of a server that has the given version of the file.
    private static func answer(_ request: ReceivedRequest, version: Int) -> ServerStep {
        RangeServer(content(version), tag: "\"v\(version)\"").answer(request)
    }

    private static func content(_ version: Int) -> String {
        String(repeating: String("abcdefghijklmnop".dropFirst(version % 16).prefix(1)), count: 10_000 + version)
    }

    @Test func downloadsGrowingFileInOneRequest() async throws {
        let version = Locked(0)
        var transfer = try TestTransfer("get") { request, _ in
            [
                Self.answer(
                    request,
                    version: version.withLock {
                        $0 += 1; return $0
                    })
            ]
        }
        transfer.options.segmentsPerFile = 3
        transfer.endpoint.settings = ["parallelThreshold": "1000"]
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .resumeLost)
        #expect(!failure.message.contains("restarts"), "the queue decides whether the file restarts")
        // The queue would restart the file once, as this attempt does.
        let receipt = try await transfer.run()
        let last = version.withLock { $0 }
        #expect(receipt.bytes == 10_000 + last)
        #expect(transfer.content == Self.content(last))
        #expect(transfer.server.requests.last?.headers["range"] == nil)
        await transfer.end()
    }

    /// A changing file does not affect downloads of other files, whether their names are in the path or in the query.
    @Test(arguments: ["/files/", "/files?key={path}"]) func downloadsOtherFileInRanges(address: String) async throws {
        let version = Locked(0)
        var transfer = try TestTransfer("get", address) { request, _ in
            [
                Self.answer(
                    request,
                    version: request.path.hasSuffix("b.bin")
                        ? 0
                        : version.withLock {
                            $0 += 1; return $0
                        })
            ]
        }
        transfer.options.segmentsPerFile = 3
        transfer.endpoint.settings = ["parallelThreshold": "1000"]
        #expect(await transfer.failure()?.failureClass == .resumeLost)
        let before = transfer.server.requests.count
        transfer.remotePath = "b.bin"
        #expect(try await transfer.run().bytes == 10_000)
        #expect(transfer.server.requests.count > before + 2)
        await transfer.end()
    }

    @Test func downloadsInRangesAgainAfterSuccess() async throws {
        let state = Locked((version: 0, isDone: false))
        var transfer = try TestTransfer("get") { request, _ in
            let version = state.withLock { state in
                if !state.isDone { state.version += 1 }
                return state.version
            }
            return [Self.answer(request, version: version)]
        }
        transfer.options.segmentsPerFile = 3
        transfer.endpoint.settings = ["parallelThreshold": "1000"]
        #expect(await transfer.failure()?.failureClass == .resumeLost)
        state.withLock { $0.isDone = true }
        for (name, usesRanges) in [("one", false), ("two", true)] {
            let before = transfer.server.requests.count
            transfer.localName = FilePath(name)
            _ = try await transfer.run()
            // The server may read requests of the previous attempt only now, but all of those requests are for ranges.
            let requestsWholeFile = transfer.server.requests.dropFirst(before).contains { $0.headers["range"] == nil }
            #expect(requestsWholeFile != usesRanges, "\(name)")
        }
        await transfer.end()
    }

    private static let truncatedResponse: [ServerStep] = [
        .raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"v1\"\r\n\r\n0123"), .close,
    ]

    /// A remote file that was truncated to the received length is not complete.
    @Test(arguments: [["Content-Range": "bytes */4"], ["Content-Range": "bytes */4", "ETag": "\"v1\""]])
    func restartsTruncatedFile(headers: [String: String]) async throws {
        let transfer = try TestTransfer("get", answers: [Self.truncatedResponse, [.answer(416, headers)]])
        _ = await transfer.failure()
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(checkpoint.confirmed == 4)
        let failure = await transfer.failure(from: checkpoint)
        #expect(failure?.failureClass == .resumeLost)
        #expect(FileManager.default.fileExists(atPath: transfer.folder.appending("file").string) == false)
        await transfer.end()
    }

    /// The length is unknown, and the 416 response has the tag of another version.
    @Test func comparesVersionIn416Response() async throws {
        let withoutLength = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"v1\"\r\n\r\n4\r\n0123\r\n"
        let transfer = try TestTransfer(
            "get", answers: [[.raw(withoutLength), .close], [.answer(416, ["Content-Range": "bytes */4", "ETag": "\"v2\""])]])
        _ = await transfer.failure()
        #expect(await transfer.failure(from: transfer.recorder.checkpoints.last)?.failureClass == .resumeLost)
        await transfer.end()
    }

    /// A range without a version may belong to any version.
    @Test func rejectsRangeWithoutVersion() async throws {
        let transfer = try TestTransfer(
            "get", answers: [Self.truncatedResponse, [.answer(206, ["Content-Range": "bytes 4-9/10"], body: "EFGHIJ")]])
        _ = await transfer.failure()
        #expect(await transfer.failure(from: transfer.recorder.checkpoints.last)?.failureClass == .resumeLost)
        #expect(transfer.content == "0123")
        await transfer.end()
    }

    /// The validators are too weak to identify a version, but they show that the version has changed.
    @Test(
        arguments: [
            ("ETag: \"v1\"", ["ETag": "W/\"v2\""]), ("ETag: \"v1\"", ["ETag": "W/\"v1\""]),
            (dateHeaders(changed: 0, now: 9), ["Last-Modified": time(5), "Date": time(5)]),
            (dateHeaders(changed: 0, now: 9), ["Last-Modified": time(5)]),
        ] as [(String, [String: String])])
    func rejectsRangeOfOtherVersion(first: String, later: [String: String]) async throws {
        for status in [206, 416] { try await expectOtherVersion(first, later, status) }
    }

    private func expectOtherVersion(_ first: String, _ later: [String: String], _ status: Int) async throws {
        let truncated = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(first)\r\n\r\n4\r\n0123\r\n"
        var headers = later
        headers["Content-Range"] = status == 206 ? "bytes 4-9/10" : "bytes */4"
        let transfer = try TestTransfer(
            "get", answers: [[.raw(truncated), .close], [.answer(status, headers, body: status == 206 ? "EFGHIJ" : "")]])
        _ = await transfer.failure()
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(await transfer.failure(from: checkpoint)?.failureClass == .resumeLost)
        #expect(transfer.content == "0123")
        await transfer.end()
    }

    private static func time(_ second: Int) -> String { "Mon, 02 Jun 2025 10:00:0\(second) GMT" }

    private static func dateHeaders(changed: Int, now: Int) -> String { "Last-Modified: \(time(changed))\r\nDate: \(time(now))" }

    // MARK: Content codings

    @Test(arguments: [
        ("reel.tar.gz", "x-gzip"), ("reel.tgz", "gzip"), ("reel.GZ", "GZIP"), ("a.br", "br"), ("a.zst", "zstd"), ("a", "identity"),
        ("a", ""),
    ])
    func acceptsFileWhoseNameMatchesCoding(name: String, coding: String) async throws {
        var transfer = try TestTransfer("get", answers: [[.answer(200, ["Content-Encoding": coding], body: "0123")]])
        transfer.localName = FilePath(name)
        #expect(try await transfer.run().bytes == 4)
        await transfer.end()
    }

    @Test(arguments: [("reel.mov", "gzip"), ("reel.gz", "br"), ("gz", "gzip"), ("reel.tar", "gzip"), ("a.gz", "gzip, gzip")])
    func rejectsEncodedContent(name: String, coding: String) async throws {
        var transfer = try TestTransfer("get", answers: [[.answer(200, ["Content-Encoding": coding], body: "0123")]])
        transfer.localName = FilePath(name)
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .unsupported)
        #expect(failure?.message.contains(coding) == true)
        #expect(transfer.server.requests.first?.headers["accept-encoding"] == "identity")
        await transfer.end()
    }
}
