import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The queue and the tus transport against a server that is not ours.
@Suite struct ResumableUploadTests {
    private let workshop: Workshop

    init() throws {
        workshop = try Workshop()
    }

    private func startServer(port: Int = 0) async throws -> RealServer {
        try await RealServer.start(in: workshop.folder.appending(path: "server"), port: port)
    }

    @Test func aServerThatDiesIsWaitedFor() async throws {
        var server = try await startServer()
        let queue = try await workshop.openQueue(server.endpoint)
        let events = queue.events
        let session = try await queue.enqueue(try (0..<30).map { try workshop.file("file-\($0)", size: 300_000) }.upload(to: "real"))
        try await queue.start()
        for await event in events {
            if case .itemCompleted(_, position: 9, _) = event.kind { break }
        }
        server.kill()
        for await event in events {
            if case .attemptFailed = event.kind { break }
        }
        server = try await startServer(port: server.port)
        #expect(try await session.value.state == .completed)
        try await workshop.checkContent(of: session, on: server)
        checkOffsets(try server.requests)
        await queue.shutdown()
    }

    @Test func aQueueThatEndsGoesOn() async throws {
        let server = try await startServer()
        var queue = try await workshop.openQueue(server.endpoint)
        let events = queue.events
        let id = try await queue.enqueue(try (0..<20).map { try workshop.file("file-\($0)", size: 200_000) }.upload(to: "real")).id
        try await queue.start()
        var completed = 0
        for await event in events {
            if case .itemCompleted = event.kind { completed += 1 }
            if completed == 5 { break }
        }
        await queue.shutdown()
        queue = try await workshop.openQueue(server.endpoint)
        let session = try await queue.handle(id)
        #expect(try await session.status.statistics.filesDone >= 5)
        try await queue.start()
        #expect(try await session.value.state == .completed)
        try await workshop.checkContent(of: session, on: server)
        checkOffsets(try server.requests)
        await queue.shutdown()
    }

    @Test func anUploadThatTheServerLostStartsOver() async throws {
        let server = try await startServer()
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        let queue = try await workshop.openQueue("http://127.0.0.1:\(relay.port)/files")
        let events = queue.events
        // The creation's answer names the upload; it is removed behind the client's back before the first byte of content arrives.
        relay.cut(afterBytes: 600_000)
        let options = SessionOptions(retry: RetryPolicy(base: .milliseconds(1)))
        let session = try await queue.enqueue(try .upload([workshop.file("file", size: 1_000_000)], to: "real", options: options))
        try await queue.start()
        for await event in events {
            guard case .attemptFailed = event.kind else { continue }
            break
        }
        try await queue.stop()
        for await event in events {
            if case .queueStopped = event.kind { break }
        }
        if try await session.status.state != .completed {
            let location = try #require(try server.requests.compactMap(\.location).first)
            try await delete("http://127.0.0.1:\(server.port)/files/\(location.split(separator: "/").last ?? "")")
            try await queue.start()
        }
        #expect(try await session.value.state == .completed)
        try await workshop.checkContent(of: session, on: server)
        await queue.shutdown()
    }

    private func delete(_ location: String) async throws {
        let arguments = ["--silent", "--fail", "--request", "DELETE", "--header", "Tus-Resumable: 1.0.0", location]
        let status = try await PythonProcess.start { try StartedProgram.run("curl", arguments).status }
        #expect(status == 0)
    }
}

extension [FilePath] {
    fileprivate func upload(to account: String) throws -> SessionRequest {
        // As soon as the server is there again.
        try .upload(self, to: account, options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000)))
    }
}
