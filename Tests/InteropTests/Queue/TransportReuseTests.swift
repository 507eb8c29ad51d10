import Foundation
import Logging
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

@Suite struct TransportReuseTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    /// Checks that several queues can use a transport: two queues at the same time, and a third queue after both have shut down.
    private func checkReuse(of transport: any Transport, at endpoint: Endpoint) async throws {
        let first = try await open(transport, endpoint, storageFolder: "first")
        try await send("1", by: first)
        let second = try await open(transport, endpoint, storageFolder: "second")
        try await send("2", by: second)
        await first.shutdown()
        try await send("3", by: second)
        await second.shutdown()
        let third = try await open(transport, endpoint, storageFolder: "first")
        try await send("4", by: third)
        await third.shutdown()
    }

    private func open(_ transport: any Transport, _ endpoint: Endpoint, storageFolder: String) async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        let queue = try await TransferQueue(
            storage: .folder(FilePath(interop.folder.appending(path: storageFolder).path)), transports: [transport],
            configuration: configuration)
        try await queue.save(Account("real", endpoints: [endpoint]))
        try await queue.start()
        return queue
    }

    private func send(_ name: String, by queue: TransferQueue) async throws {
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 1))
        let session = try await queue.enqueue(try .upload([interop.file(name, size: 300_000)], to: "real", options: options))
        #expect(try await session.value.state == .completed, "\(name)")
    }

    @Test func reusesTUSTransport() async throws {
        let server = interop.loopbackServer()
        try await checkReuse(of: TUSTransport(), at: .tus(try await server.start().absoluteString))
        #expect(server.statistics.uploads.count { $0.isComplete } == 4)
        await server.stop()
    }

    @Test func reusesHTTPTransport() async throws {
        let server = try await PlainServer.start(.put, in: interop.folder.appending(path: "server"))
        try await checkReuse(of: HTTPTransport(), at: .http(server.address()))
        for name in ["1", "2", "3", "4"] {
            #expect(try server.content(of: try RemotePath(name)) == interop.content(try interop.file(name, size: 300_000)))
        }
    }

    @Test func reusesSFTPTransport() async throws {
        let folder = try await SFTPServerFolder()
        try await checkReuse(of: SFTPTransport(), at: try folder.endpoint())
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path).sorted() == ["1", "2", "3", "4"])
        await folder.close()
    }
}
