import SSHEngine
import SSHFixture
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct ChannelTests {
    @Test func `a subsystem receives and sends bytes`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let connection = try await server.connect()
        #expect(connection.isAlive)
        #expect(connection.agreement.authenticationMethod == "publickey (\(server.userKey))")
        #expect(connection.agreement.serverVersion.hasPrefix("SSH-2.0-OpenSSH"))
        #expect(connection.agreement.methods.prefix(4) == ["curve25519-sha256", "ssh-ed25519", "aes128-ctr", "aes128-ctr"])

        let handler = TestHandler()
        let channel = try await connection.openSubsystem("sftp", handler: handler)
        // The handler queues SSH_FXP_INIT of protocol version 3. The wake-up from this thread makes the connection's thread send it.
        handler.send([0, 0, 0, 5, 1, 0, 0, 0, 3])
        channel.wake()
        await handler.waitFor(bytes: 9)
        #expect(handler.received.dropFirst(4).prefix(5) == [2, 0, 0, 0, 3])

        channel.close()
        await handler.waitForEnd()
        #expect(handler.ends == [nil])
        await connection.close()
        #expect(!connection.isAlive)
        #expect(await connection.waitForEnd() == nil)
        await #expect(throws: TransferError.self) { try await connection.openSubsystem("sftp", handler: TestHandler()) }
        #expect(handler.ends == [nil])
    }

    @Test func `opening a missing subsystem fails, and the connection stays open`() async throws {
        let server = try await SSHServerProcess.start(options: ["MaxSessions 2"], subsystems: ["echo": "exec cat"])
        defer { server.stop() }
        let connection = try await server.connect()
        let handler = TestHandler()
        let missing = try await #require(throws: TransferError.self) { try await connection.openSubsystem("nothing", handler: handler) }
        #expect(missing.failureClass == .unreachable)
        #expect(missing.code == .notThisProtocol)
        let channels = [
            try await connection.openSubsystem("echo", handler: TestHandler()),
            try await connection.openSubsystem("echo", handler: TestHandler()),
        ]
        let full = try await #require(throws: TransferError.self) { try await connection.openSubsystem("echo", handler: handler) }
        #expect(full.failureClass == .transient)
        // If the channel never opens, the connection does not call `end`.
        #expect(handler.ends.isEmpty)
        channels[0].close()
        let echo = EchoHandler(size: 1000)
        var reopened: SSHChannel?
        // The server frees the channel's slot only after it has processed the close.
        while reopened == nil {
            reopened = try? await connection.openSubsystem("echo", handler: echo)
            #expect(connection.isAlive)
        }
        await echo.waitForAll()
        #expect(echo.echoed == 1000)
        await connection.close()
    }

    @Test func `a command returns its output, its error output and its exit status`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let connection = try await server.connect()
        let result = try await connection.run(Array("tr a-z A-Z; echo no >&2; exit 3".utf8), input: Array("hello".utf8))
        #expect(result.status == 3)
        #expect(result.output == Array("HELLO".utf8))
        #expect(result.errorOutput == Array("no\n".utf8))
        #expect(!result.isOutputTruncated)
        let truncated = try await connection.run(Array("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2".utf8), outputLimit: 1000)
        #expect(truncated.output.count == 1000)
        #expect(truncated.errorOutput.count == 64 << 10)
        #expect(truncated.isOutputTruncated)
        #expect(truncated.status == 0)
        let killed = try await connection.run(Array("kill -KILL $$".utf8))
        #expect(killed.status == nil)
        #expect(killed.signal == "KILL")
        // Runs commands concurrently, and cancels another command that would run for ten minutes.
        let endless = Task { try await connection.run(Array("sleep 600".utf8)) }
        let outputs = try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            for number in 0..<6 { group.addTask { (number, try await connection.run(Array("echo \(number)".utf8)).output) } }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        for number in 0..<6 { #expect(outputs[number] == Array("\(number)\n".utf8)) }
        endless.cancel()
        await #expect(throws: CancellationError.self) { try await endless.value }
        await connection.close()
    }

    @Test func `parallel channels work with tiny buffers and frequent key exchanges`() async throws {
        let server = try await SSHServerProcess.start(
            options: ["RekeyLimit 512K", "ClientAliveInterval 1"], subsystems: ["echo": "exec cat"])
        defer { server.stop() }
        var settings = try server.settings()
        settings.socketBufferSize = 4096
        let connection = try await server.connect(settings)
        let handlers = (0..<4).map { EchoHandler(size: 2_000_000 + $0 * 7777, blockSize: 9000 + $0 * 8011) }
        var channels: [SSHChannel] = []
        for handler in handlers { channels.append(try await connection.openSubsystem("echo", handler: handler)) }
        for (number, handler) in handlers.enumerated() {
            await handler.waitForAll()
            #expect(handler.error == nil)
            #expect(handler.echoed == 2_000_000 + number * 7777)
        }
        await connection.close()
        #expect(channels.count == 4)
    }

    @Test func `a small receive window is extended repeatedly`() async throws {
        let server = try await SSHServerProcess.start(subsystems: ["echo": "exec cat"])
        defer { server.stop() }
        var settings = try server.settings()
        settings.receiveWindow = 32 << 10
        let connection = try await server.connect(settings)
        let echo = EchoHandler(size: 1_000_000, blockSize: 200_000)
        let channel = try await connection.openSubsystem("echo", handler: echo)
        await echo.waitForAll()
        #expect(echo.echoed == 1_000_000)
        channel.close()
        await connection.close()
    }
}
