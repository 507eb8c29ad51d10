import Foundation
import Locking
import ProcessFixture
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit

/// The queue and the tus transport, with servers that are killed or that lose uploads.
@Suite struct ResumableUploadTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private func startServer(port: ReservedPort? = nil) async throws -> RealServer {
        try await RealServer.start(in: interop.folder.appending(path: "server"), port: port)
    }

    @Test func resumesAfterServerRestarts() async throws {
        var server = try await startServer()
        let queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        // The later files are so large that the server is killed while they are sent.
        try await queue.setRateLimit(1 << 20)
        let session = try await queue.enqueue(
            try (0..<30).map { try interop.file("file-\($0)", size: $0 < 10 ? 30_000 : 3_000_000) }.upload(to: "real"))
        try await queue.start()
        for await event in events {
            if case .itemCompleted(_, position: 9, _) = event.kind { break }
        }
        server.kill()
        for await event in events {
            if case .attemptFailed = event.kind { break }
        }
        server = try await startServer(port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        checkOffsets(try server.requests)
        await queue.shutdown()
    }

    @Test func continuesAfterQueueReopens() async throws {
        let server = try await startServer()
        var queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        let id = try await queue.enqueue(try (0..<20).map { try interop.file("file-\($0)", size: 200_000) }.upload(to: "real")).id
        try await queue.start()
        var completed = 0
        for await event in events {
            if case .itemCompleted = event.kind { completed += 1 }
            if completed == 5 { break }
        }
        await queue.shutdown()
        queue = try await interop.openQueue(server.endpoint)
        let session = try await queue.session(id)
        #expect(try await session.status.statistics.filesDone >= 5)
        try await queue.start()
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        checkOffsets(try server.requests)
        await queue.shutdown()
    }

    @Test func restartsLostUpload() async throws {
        let server = try await startServer()
        let queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        let session = try await queue.enqueue(try .upload([interop.file("file", size: 12 << 20)], to: "real", options: .slowly))
        try await queue.start()
        await session.waitUntilSent(1 << 20)
        try await queue.stopAndWait()
        // Another client removes the upload.
        let location = try #require(try server.requests.compactMap(\.location).first)
        try await curl("--request", "DELETE", "http://127.0.0.1:\(server.port)/files/\(location.split(separator: "/").last ?? "")")
        try await queue.update(session.id, SessionUpdate(rateLimit: .unlimited))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        #expect(await events.restarts(until: session.id).map(\.code) == [.uploadGone])
        let requests = try server.requests
        // curl sends the first DELETE. The transport sends the second DELETE, in case the server still has bytes of the lost upload.
        #expect(requests.prefix(5).map(\.method) == ["OPTIONS", "POST", "PATCH", "DELETE", "HEAD"])
        #expect(requests.dropFirst(5).compactMap(\.method).sorted() == ["DELETE", "PATCH", "POST"])
        #expect(requests.filter { $0.method == "HEAD" }.map(\.status) == [404])
        await queue.shutdown()
    }

    /// The upload expires according to the server's clock, which differs from the client's.
    @Test func restartsExpiredUpload() async throws {
        let time = Locked(Date(timeIntervalSince1970: 784_111_777))
        let server = TUSLoopbackServer(
            folder: FilePath(interop.folder.appending(path: "server").path), options: LoopbackOptions(lifetime: .seconds(60)),
            now: { time.withLock { $0 } })
        let address = try await server.start()
        let queue = try await interop.openQueue(address.absoluteString)
        let events = queue.events
        let session = try await queue.enqueue(try .upload([interop.file("file", size: 12 << 20)], to: "real", options: .slowly))
        try await queue.start()
        await session.waitUntilSent(1 << 20)
        try await queue.stopAndWait()
        // The upload has not expired yet, so it resumes.
        time.withLock { $0 += 59 }
        let sent = try await session.status.statistics.bytesSent
        try await queue.start()
        await session.waitUntilSent(sent + (1 << 20))
        try await queue.stopAndWait()
        // When the server responds to this request, it has handled the last bytes of the PATCH.
        let upload = try #require(server.statistics.uploads.first)
        try await curl("--head", address.appending(path: upload.id).absoluteString)
        time.withLock { $0 += 61 }
        try await queue.update(session.id, SessionUpdate(rateLimit: .unlimited))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        #expect(await events.restarts(until: session.id).map(\.code) == [.uploadGone])
        #expect(server.statistics.requests == ["OPTIONS": 1, "POST": 2, "PATCH": 3, "HEAD": 3, "DELETE": 1])
        await queue.shutdown()
        await server.stop()
    }

    private func curl(_ request: String...) async throws {
        let arguments = ["--silent", "--fail", "--header", "Tus-Resumable: 1.0.0"] + request
        let status = try await PythonProcess.runBlocking { try StartedProgram.run("curl", arguments).status }
        #expect(status == 0)
    }
}

extension SessionOptions {
    /// Options for a slow session, which a test interrupts before the session completes.
    fileprivate static let slowly = SessionOptions(rateLimit: 512 << 10)
}

extension QueueEvents {
    /// Waits until a session completes. Returns the errors that caused its files to restart.
    fileprivate func restarts(until session: SessionID) async -> [TransferError] {
        var restarts: [TransferError] = []
        for await event in self {
            if case .itemRestarted(session, _, let error) = event.kind { restarts.append(error) }
            if case .completed(session) = event.kind { break }
        }
        return restarts
    }
}

extension [FilePath] {
    fileprivate func upload(to account: String) throws -> SessionRequest {
        // Permits so many attempts that the session does not fail while the server is down.
        try .upload(self, to: account, options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000)))
    }
}
