import SSHEngine
import SSHFixture
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(2)))
struct ChannelTests {
    @Test func `a subsystem gets bytes and gives bytes`() async throws {
        let server = try await SSHServerProcess.start()
        let connection = try await server.connect()
        #expect(connection.isAlive)
        #expect(connection.agreement.authenticationMethod == "publickey (\(server.userKey))")
        #expect(connection.agreement.serverVersion.hasPrefix("SSH-2.0-OpenSSH"))

        let handler = TestHandler()
        // SSH_FXP_INIT of version 3.
        handler.send([0, 0, 0, 5, 1, 0, 0, 0, 3])
        let channel = try await connection.openSubsystem("sftp", handler: handler)
        await handler.waitFor(bytes: 9)
        #expect(handler.received.dropFirst(4).prefix(5) == [2, 0, 0, 0, 3])

        channel.close()
        await handler.waitForEnd()
        #expect(handler.ends == [nil])
        await connection.close()
        #expect(!connection.isAlive)
        await #expect(throws: TransferError.self) { try await connection.openSubsystem("sftp", handler: TestHandler()) }
    }

    @Test func `a command's output, complaints and status come back`() async throws {
        let server = try await SSHServerProcess.start()
        let connection = try await server.connect()
        let result = try await connection.run(Array("tr a-z A-Z; echo no >&2; exit 3".utf8), input: Array("hello".utf8))
        #expect(result.status == 3)
        #expect(result.output == Array("HELLO".utf8))
        #expect(result.errorOutput == Array("no\n".utf8))
        #expect(!result.isOutputCut)
        let cut = try await connection.run(Array("head -c 3000000 /dev/zero".utf8), outputLimit: 1000)
        #expect(cut.output.count == 1000)
        #expect(cut.isOutputCut)
        #expect(cut.status == 0)
        let killed = try await connection.run(Array("kill -KILL $$".utf8))
        #expect(killed.status == nil)
        #expect(killed.signal == "KILL")
        await connection.close()
    }
}
