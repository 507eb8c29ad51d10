import Foundation
import Locking
import SSHEngine
import SSHFixture
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct HostileServerTests {
    private func settings(_ port: UInt16, host: String = "127.0.0.1") -> SSHSettings {
        var settings = SSHSettings(host: host, port: port, user: "nobody")
        settings.authentication.agent = .none
        settings.hostKeys = HostKeyPolicy(userFile: nil)
        return settings
    }

    private func failure(_ settings: SSHSettings) async throws -> TransferError {
        try await #require(throws: TransferError.self) {
            try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent)
        }
    }

    private func failure(
        greeting: [UInt8], repeatsGreeting: Bool = false, thenRepeating rest: [UInt8] = [], closes: Bool = false,
        _ change: (inout SSHSettings) -> Void = { _ in }
    ) async throws -> TransferError {
        let server = try RawServer { connection in
            repeat {
                if !connection.send(greeting) { return }
            } while repeatsGreeting
            while !rest.isEmpty {
                if !connection.send(rest) { return }
            }
            if !closes { connection.waitForEnd() }
        }
        defer { server.stop() }
        var settings = settings(server.port)
        change(&settings)
        return try await failure(settings)
    }

    @Test func `an endless greeting is rejected`() async throws {
        let error = try await failure(greeting: Array("Welcome to the machine\r\n".utf8), repeatsGreeting: true)
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .notThisProtocol)
    }

    @Test func `an endless greeting line is rejected`() async throws {
        let error = try await failure(greeting: [UInt8](repeating: 0x78, count: 4096), repeatsGreeting: true)
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .notThisProtocol)
    }

    @Test func `invalid bytes after a valid greeting are rejected`() async throws {
        let error = try await failure(greeting: Array("SSH-2.0-noise\r\n".utf8) + [UInt8](repeating: 0, count: 4096), repeatsGreeting: true)
        #expect([FailureClass.unreachable, .transient, .unsupported].contains(error.failureClass), "\(error)")
    }

    /// The server sends an endless series of small ignore messages (RFC 4253, section 11.2). Each packet has a valid length.
    @Test func `an endless handshake is rejected`() async throws {
        let packet: [UInt8] = [0, 0, 4, 12, 6, 2, 0, 0, 4, 0] + [UInt8](repeating: 0, count: 1024 + 6)
        let error = try await failure(
            greeting: Array("SSH-2.0-endless\r\n".utf8) + (0..<64).flatMap { _ in packet }, thenRepeating: (0..<64).flatMap { _ in packet })
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .notThisProtocol, "\(error)")
    }

    @Test func `a handshake that stalls times out`() async throws {
        let error = try await failure(greeting: Array("SSH-2.0-silent\r\n".utf8)) { $0.handshakeTimeout = .milliseconds(50) }
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .timedOut)
        #expect(error.message.contains("did not complete the key exchange"))
    }

    @Test func `only a small part of a huge greeting is read`() async throws {
        let sentBytes = Locked(0)
        let server = try RawServer { connection in
            let line = [UInt8](repeating: 0x78, count: (64 << 10) - 2) + [13, 10]
            for _ in 0..<(1 << 30) / line.count {
                guard connection.send(line) else { return }
                sentBytes.withLock { $0 += line.count }
            }
        }
        defer { server.stop() }
        let error = try await failure(settings(server.port))
        #expect(error.code == .notThisProtocol)
        await server.waitUntilIdle()
        // `sentBytes` includes bytes in socket buffers that the client has not read.
        #expect(sentBytes.withLock { $0 } < 64 << 20)
    }

    @Test func `a server without a greeting times out`() async throws {
        let error = try await failure(greeting: []) { $0.handshakeTimeout = .milliseconds(50) }
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .timedOut)
    }

    @Test func `the error identifies a service other than SSH`() async throws {
        let ftp = try await failure(greeting: Array("220 ftp.example.com\r\n".utf8)) { $0.handshakeTimeout = .milliseconds(200) }
        #expect(ftp.code == .notThisProtocol)
        #expect(ftp.description.contains("220 ftp.example.com"))
        let http = try await failure(greeting: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), closes: true)
        #expect(http.failureClass == .unreachable)
        #expect(http.code == .notThisProtocol, "\(http)")
    }

    @Test(arguments: ["Exceeded MaxStartups\r\n", "Not allowed at this time\r\n"])
    func `a busy server is reported`(greeting: String) async throws {
        let error = try await failure(greeting: Array(greeting.utf8), closes: true)
        #expect(error.failureClass == .transient && error.code == .serverError, "\(error)")
        #expect(error.message.contains("at the moment") && error.message.contains("MaxStartups"), "\(error)")
    }

    @Test func `a server at its login limit is reported as busy`() async throws {
        let server = try await SSHServerProcess.start(options: ["MaxStartups 1:100:1"])
        defer { server.stop() }
        let other = try RawClient(to: server.port)
        defer { other.close() }
        // The server counts this connection towards its limit once it has sent its identification string.
        #expect(try await SSHServerProcess.runBlocking { other.receive() }.starts(with: Array("SSH-2.0-".utf8)))
        let settings = try server.settings()
        let error = try await failure(settings)
        #expect(error.failureClass == .transient && error.code == .serverError, "\(error)")
    }

    @Test func `a server that disconnects immediately is unreachable`() async throws {
        let error = try await failure(greeting: [], closes: true)
        #expect(error.failureClass == .unreachable)
        #expect(error.code == .connectionLost)
    }

    @Test func `a closed port and an unknown name are unreachable`() async throws {
        let closed = try ReservedPort()
        let refused = try await failure(settings(closed.port))
        #expect(refused.failureClass == .unreachable)
        #expect(refused.code == .connectionRefused)
        // This label is too long for a DNS request (RFC 1035, section 2.3.4), so no name server is involved.
        let missing = try await failure(settings(22, host: String(repeating: "a", count: 70) + ".invalid"))
        #expect(missing.failureClass == .unreachable)
        #expect(missing.code == .hostNotFound)
    }

    @Test func `all addresses of a name are tried`() async throws {
        // localhost also resolves to ::1, where no process listens on this port.
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        var settings = try server.settings()
        settings.host = "localhost"
        settings.hostKeys = HostKeyPolicy(trust: .acceptNew, userFile: FilePath(server.folder.appending(path: "known").path))
        try await server.connect(settings).close()
    }

    @Test func `cancellation ends the wait for an unresponsive server`() async throws {
        let (arrivals, arrival) = AsyncStream<Void>.makeStream()
        let server = try RawServer { connection in
            arrival.yield()
            connection.waitForEnd()
            arrival.yield()
        }
        defer { server.stop() }
        let settings = settings(server.port)
        let opening = Task { try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent) }
        var steps = arrivals.makeAsyncIterator()
        await steps.next()
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        // The client closes its socket, so the server's side of the connection ends.
        await steps.next()
    }
}
