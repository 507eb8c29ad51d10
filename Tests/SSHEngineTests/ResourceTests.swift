import Foundation
import SSHEngine
import SSHFixture
import Testing
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.timeLimit(.minutes(10)))
struct ResourceTests {
    /// Whether to compare descriptors, threads and memory before and after a thousand connections. To enable this comparison, set
    /// `TRANSFERKIT_SOAK` and run the test alone in its process.
    private static let isSoak = ProcessInfo.processInfo.environment["TRANSFERKIT_SOAK"] != nil

    private func count(_ folder: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: folder).count
    }

    /// The resident memory of this process in bytes (proc(5), `/proc/PID/statm`).
    private func memory() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(fields.dropFirst().first.flatMap { Int($0) }) * Int(sysconf(CInt(_SC_PAGESIZE)))
    }

    @Test func `all resources of ended connections are released`() async throws {
        let server = try await SSHServerProcess.start(subsystems: ["echo": "exec cat"])
        defer { server.stop() }
        let relay = try RawServer.relay(to: server.port)
        defer { relay.stop() }
        let settings = try server.settings(port: relay.port)
        var mutableSettings = settings
        mutableSettings.hostKeys = HostKeyPolicy(userFile: nil)
        let untrusting = mutableSettings
        try await round(server, settings, untrusting)
        // The first rounds create resources that exist once per process.
        for _ in 0..<(Self.isSoak ? 20 : 0) { try await round(server, settings, untrusting) }
        let before = (try count("/proc/self/fd"), try count("/proc/self/task"))
        let memoryBefore = Self.isSoak ? try memory() : 0
        for _ in 0..<(Self.isSoak ? 250 : 5) { try await round(server, settings, untrusting) }
        // The relay closes its end of a connection only after the client has closed the other end.
        await relay.waitUntilIdle()
        if Self.isSoak {
            // A cancelled connection may still be closing. A leak would add hundreds of descriptors.
            #expect(try count("/proc/self/fd") <= before.0 + 8)
            #expect(try count("/proc/self/task") <= before.1 + 2)
            // A libssh2 session uses at least 75 KB, so a leak of a thousand sessions would be 75 MB.
            #expect(try memory() - memoryBefore < 20 << 20)
        }
    }

    /// Opens four connections: one that is closed, one that is released, one that is rejected, and one that is cancelled.
    private func round(_ server: SSHServerProcess, _ settings: SSHSettings, _ untrusting: SSHSettings) async throws {
        let closed = try await server.connect(settings)
        let echo = EchoHandler(size: 10_000)
        let channel = try await closed.openSubsystem("echo", handler: echo)
        await echo.waitForAll()
        channel.close()
        await closed.close()

        let released = TestHandler()
        do {
            let connection = try await server.connect(settings)
            _ = try await connection.openSubsystem("echo", handler: released)
        }
        await released.waitForEnd()
        #expect(released.ends == [nil])

        await #expect(throws: TransferError.self) { try await server.connect(untrusting) }

        let cancelled = Task { try await server.connect(settings) }
        cancelled.cancel()
        if let connection = try? await cancelled.value { await connection.close() }
    }

    /// After authentication, a connection needs no more passphrases or passwords.
    @Test func `a connection does not keep the credentials`() async throws {
        final class Secrets: CredentialProvider {
            func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
        }
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        weak var retained: Secrets?
        let connection: SSHConnection
        do {
            let secrets = Secrets()
            retained = secrets
            connection = try await SSHConnection.open(try server.settings(), credentials: secrets, logger: .silent)
        }
        // The connection's thread releases the credentials before it reports that the connection is open.
        #expect(retained == nil)
        #expect(connection.isAlive)
        await connection.close()
    }
}
