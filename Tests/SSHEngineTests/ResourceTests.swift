import Foundation
import SSHEngine
import SSHFixture
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(5)))
struct ResourceTests {
    /// With `TRANSFERKIT_SOAK` set, and this test alone in its process, all descriptors and threads count, over many more rounds.
    private static let isSoak = ProcessInfo.processInfo.environment["TRANSFERKIT_SOAK"] != nil

    private func count(_ folder: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: folder).count
    }

    @Test func `connections that were closed, dropped, refused or cancelled leave nothing behind`() async throws {
        let server = try await SSHServerProcess.start(subsystems: ["echo": "exec cat"])
        defer { server.stop() }
        let relay = try RawServer.relay(to: server.port)
        defer { relay.stop() }
        let settings = try server.settings(port: relay.port)
        var unknown = settings
        unknown.hostKeys = HostKeyPolicy(userFile: nil)
        let stranger = unknown
        try await round(server, settings, stranger)
        let before = (try count("/proc/self/fd"), try count("/proc/self/task"))
        for _ in 0..<(Self.isSoak ? 250 : 5) { try await round(server, settings, stranger) }
        // Each end of a connection is seen by the relay before it ends its own.
        await relay.waitUntilIdle()
        if Self.isSoak {
            #expect(try count("/proc/self/fd") <= before.0)
            #expect(try count("/proc/self/task") <= before.1 + 2)
        }
    }

    /// Four connections.
    private func round(_ server: SSHServerProcess, _ settings: SSHSettings, _ stranger: SSHSettings) async throws {
        let closed = try await server.connect(settings)
        let echo = EchoHandler(size: 10_000)
        let channel = try await closed.openSubsystem("echo", handler: echo)
        await echo.waitForAll()
        channel.close()
        await closed.close()

        let dropped = TestHandler()
        do {
            let connection = try await server.connect(settings)
            _ = try await connection.openSubsystem("echo", handler: dropped)
        }
        await dropped.waitForEnd()
        #expect(dropped.ends == [nil])

        await #expect(throws: TransferError.self) { try await server.connect(stranger) }

        let cancelled = Task { try await server.connect(settings) }
        cancelled.cancel()
        if let connection = try? await cancelled.value { await connection.close() }
    }
}
