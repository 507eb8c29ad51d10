import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportTUS

@Suite struct ParallelDownloadTests {
    private static let size = 2 << 20

    private let interop: InteropFixture
    private let folder: FilePath

    init() throws {
        interop = try InteropFixture()
        folder = FilePath(interop.folder.appending(path: "received").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
    }

    /// Starts an nginx that serves one file.
    ///
    /// - Parameter limits: The number of requests that nginx serves in parallel, and the maximum speed of each request, in the notation of
    ///   nginx's `limit_rate`.
    private func startServer(_ limits: String...) async throws -> PythonProcess {
        let server = interop.folder.appending(path: "server")
        let process = try await PythonProcess.runBlocking { try PythonProcess("nginx_files.py", [server.path] + limits) }
        let file = try interop.file("large", size: Self.size)
        let copy = server.appending(path: "files/large")
        try FileManager.default.copyItem(atPath: file.string, toPath: copy.path)
        // nginx identifies the versions of a file by the modification time in whole seconds. A recently modified file could change again
        // within the same second, so a client does not rely on its version. Therefore, the file gets an old time.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: copy.path)
        return process
    }

    private struct Request {
        var status: Int
        var range: String
        var connection: String
    }

    private var requests: [Request] {
        get throws {
            let log = try String(contentsOf: interop.folder.appending(path: "server/access.log"), encoding: .utf8)
            return log.split(separator: "\n").map { line in
                let words = line.split(separator: " ").map(String.init)
                return Request(status: Int(words[1]) ?? 0, range: words[2], connection: words[4])
            }
        }
    }

    private func download(from endpoint: Endpoint, _ transport: any Transport, parallel: Int = 4) async throws {
        let queue = try await interop.openQueue(Account("real", endpoints: [endpoint]), transports: [transport])
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 100), segmentsPerFile: parallel)
        let session = try await queue.enqueue(
            .download(items: [.remote(try RemotePath("large"))], from: "real", to: folder, options: options))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        let sent = FilePath(interop.folder.appending(path: "large").path)
        #expect(try interop.content(folder.appending("large")) == interop.content(sent))
        await queue.shutdown()
    }

    private static let settings = ["parallelThreshold": "250000"]

    @Test(arguments: [HTTPTransport(), TUSTransport()] as [any Transport])
    func usesSeparateConnections(transport: any Transport) async throws {
        // The server is slow, so that the other connections open before the first connection has received the whole file.
        let server = try await startServer("100", "100k")
        defer { withExtendedLifetime(server) {} }
        let rest = "://127.0.0.1:\(server.port)/"
        let settings = Self.settings
        let endpoint: Endpoint =
            transport.id == .http
            ? Endpoint(transport: .http, address: "http+get\(rest)", settings: settings)
            : Endpoint(transport: .tus, address: "http\(rest)", settings: settings)
        try await download(from: endpoint, transport)
        let requests = try requests
        #expect(requests.allSatisfy { $0.status == 206 })
        #expect(Set(requests.map(\.connection)).count > 1)
        #expect(Set(requests.map(\.range)).count == requests.count, "no range is requested twice")
    }

    @Test func resumesAfterLostConnection() async throws {
        let server = try await startServer()
        defer { withExtendedLifetime(server) {} }
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        relay.cut(.fromServer, inAllAfter: 1 << 20, then: .redirected(to: UInt16(server.port)))
        try await download(
            from: Endpoint(transport: .http, address: "http+get://127.0.0.1:\(relay.port)/", settings: Self.settings), HTTPTransport())
        #expect(try requests.allSatisfy { $0.status == 206 })
    }

    @Test func adaptsToLimitOfTwoRequests() async throws {
        let server = try await startServer("2", "100k")
        defer { withExtendedLifetime(server) {} }
        try await download(
            from: Endpoint(transport: .http, address: "http+get://127.0.0.1:\(server.port)/", settings: Self.settings), HTTPTransport())
        let statuses = try requests.map(\.status)
        #expect(statuses.contains(206))
        #expect(statuses.count { $0 == 503 } <= 2, "at most two of the four connections are rejected, once each")
    }
}
