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
struct FaultTests {
    /// The subsystems of the server. `source` and `sink` write their process IDs to files. `source` sends endlessly. `sink` receives
    /// endlessly, and sends `taken` after a million bytes. It keeps its output open, because the server would otherwise end the channel.
    private static let subsystems = [
        "echo": "exec cat",
        "source": "echo $$ > $folder/source; exec cat /dev/zero",
        "sink": "echo $$ > $folder/sink; head -c 1000000 > /dev/null; echo taken; exec cat 3>&1 > /dev/null",
    ]

    private func process(_ name: String, of server: SSHServerProcess) throws -> pid_t {
        let text = try String(contentsOf: server.folder.appending(path: name), encoding: .utf8)
        return try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    private func killProcess(_ name: String, of server: SSHServerProcess) throws {
        #expect(kill(try process(name, of: server), SIGKILL) == 0)
    }

    @Test func `a killed server process ends only its channel`() async throws {
        let server = try await SSHServerProcess.start(subsystems: Self.subsystems)
        defer { server.stop() }
        let connection = try await server.connect()

        let download = TestHandler(storesBytes: false)
        let source = try await connection.openSubsystem("source", handler: download)
        await download.waitFor(bytes: 3 << 20)
        try killProcess("source", of: server)
        await download.waitForEnd()

        let upload = EndlessHandler()
        let sink = try await connection.openSubsystem("sink", handler: upload)
        await upload.recorder.waitFor(bytes: 6)
        try killProcess("sink", of: server)
        await upload.recorder.waitForEnd()

        for ends in [download.ends, upload.recorder.ends] {
            #expect(ends.count == 1)
            #expect(ends.first??.failureClass == .transient)
            #expect(ends.first??.code == .connectionLost)
        }
        // Other channels of the connection are not affected.
        let echo = EchoHandler(size: 100_000)
        let channel = try await connection.openSubsystem("echo", handler: echo)
        await echo.waitForAll()
        #expect(echo.echoed == 100_000)
        for channel in [source, sink, channel] { channel.close() }
        #expect(connection.isAlive)
        await connection.close()
        #expect(download.ends.count == 1)
    }

    @Test(arguments: ["source", "sink", nil])
    func `a broken connection ends its channel and runs no more commands`(subsystem: String?) async throws {
        let server = try await SSHServerProcess.start(subsystems: Self.subsystems)
        defer { server.stop() }
        let relay = try RawServer.relay(to: server.port)
        defer { relay.stop() }
        let connection = try await server.connect(try server.settings(port: relay.port))
        let upload = EndlessHandler()
        if let subsystem {
            _ = try await connection.openSubsystem(subsystem, handler: upload)
            await upload.recorder.waitFor(bytes: 6)
        }
        relay.cut()
        let error = try #require(await connection.waitForEnd())
        #expect(error.failureClass == .transient)
        #expect(error.code == .connectionLost)
        #expect(!connection.isAlive)
        if subsystem != nil {
            await upload.recorder.waitForEnd()
            // The server may also have reported the end of the process, but each channel ends only once.
            #expect(upload.recorder.ends.count == 1)
            #expect(upload.recorder.ends.first??.failureClass == .transient)
            #expect(upload.recorder.ends.first??.code == .connectionLost)
        }
        let later = await #expect(throws: TransferError.self) { try await connection.run(Array("true".utf8)) }
        #expect(later?.failureClass == .transient)
    }

    @Test func `an unresponsive server times out`() async throws {
        let server = try await SSHServerProcess.start(subsystems: ["echo": "echo $PPID > $folder/session; exec cat"])
        defer { server.stop() }
        var settings = try server.settings()
        settings.keepaliveInterval = .seconds(1)
        let connection = try await server.connect(settings)
        let handler = TestHandler()
        let channel = try await connection.openSubsystem("echo", handler: handler)
        handler.send([1, 2, 3])
        channel.wake()
        await handler.waitFor(bytes: 3)
        let session = try process("session", of: server)
        try #require(try String(contentsOfFile: "/proc/\(session)/comm", encoding: .utf8) == "sshd\n")
        defer { kill(session, SIGKILL) }
        kill(session, SIGSTOP)
        let error = try #require(await connection.waitForEnd())
        #expect(error.failureClass == .transient)
        #expect(error.code == .stalled)
        #expect(handler.ends == [error])
    }

    @Test func `closing the connection ends channels and commands`() async throws {
        let server = try await SSHServerProcess.start(subsystems: ["stuck": "echo ready; exec sleep 600"])
        defer { server.stop() }
        let connection = try await server.connect()
        let handler = EndlessHandler()
        let channel = try await connection.openSubsystem("stuck", handler: handler)
        await handler.recorder.waitFor(bytes: 6)
        let command = Task { try await connection.run(Array("sleep 600".utf8)) }
        // The server starts this command after `sleep`, so `sleep` is running when the connection closes.
        _ = try await connection.run(Array("true".utf8))
        await connection.close()
        await handler.recorder.waitForEnd()
        #expect(handler.recorder.ends == [nil])
        await #expect(throws: TransferError.self) { try await command.value }
        channel.close()
    }
}
