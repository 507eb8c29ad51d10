import Foundation
import Locking
import SSHEngine
import SSHFixture
import SystemPackage
import Testing
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Deadlines and cancellation of the steps of opening a connection, if the server never responds.
@Suite(.timeLimit(.minutes(10)))
struct DeadlineTests {
    private static func settings(_ port: UInt16) -> SSHSettings {
        var settings = SSHSettings(host: "127.0.0.1", port: port, user: "nobody")
        settings.authentication.agent = .none
        settings.hostKeys = HostKeyPolicy(userFile: nil)
        return settings
    }

    private func open(_ settings: SSHSettings) async throws -> SSHConnection {
        try await SSHConnection.open(settings, credentials: TestSecrets(), logger: .silent)
    }

    @Test func `a server that accepts no connection is unreachable`() async throws {
        let silent = try SilentPort()
        var settings = Self.settings(silent.port)
        settings.connectTimeout = .milliseconds(50)
        let connecting = settings
        let error = try await #require(throws: TransferError.self) { try await open(connecting) }
        #expect(error.failureClass == .unreachable && error.code == .timedOut)
        #expect(error.message.contains("did not respond within"), "\(error)")
        settings.connectTimeout = .seconds(3_600)
        let waiting = settings
        let opening = Task { try await open(waiting) }
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
    }

    @Test(arguments: ["", "SSH-2.0-silent\r\n"]) func `the key exchange can be cancelled`(greeting: String) async throws {
        let (arrivals, arrival) = AsyncStream<Void>.makeStream()
        let server = try RawServer { connection in
            connection.send(Array(greeting.utf8))
            // The client sends its identification string and its first packet immediately.
            _ = connection.receive()
            arrival.yield()
            connection.waitForEnd()
            arrival.yield()
        }
        defer { server.stop() }
        var settings = Self.settings(server.port)
        settings.handshakeTimeout = .seconds(3_600)
        let waiting = settings
        let opening = Task { try await open(waiting) }
        var steps = arrivals.makeAsyncIterator()
        await steps.next()
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        await steps.next()
    }

    /// The server runs an `AuthorizedKeysCommand` that never exits, so it never responds to the authentication request.
    @Test(arguments: [true, false]) func `authentication has a deadline and can be cancelled`(isCancelled: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-deadline-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (script, startFile) = (folder.appending(path: "script"), folder.appending(path: "startFile"))
        try Data("echo > '\(startFile.path)'; exec sleep 3600\n".utf8).write(to: script)
        let server = try await SSHServerProcess.start(options: [
            "AuthorizedKeysFile none", "AuthorizedKeysCommand /bin/sh \(script.path)", "AuthorizedKeysCommandUser \(NSUserName())",
        ])
        var settings = try server.settings()
        settings.authenticationTimeout = isCancelled ? .seconds(3_600) : .milliseconds(200)
        let waiting = settings
        let isOver = Locked(false)
        let opening = Task {
            defer { isOver.withLock { $0 = true } }
            return try await server.connect(waiting)
        }
        if isCancelled {
            while !FileManager.default.fileExists(atPath: startFile.path), !isOver.withLock({ $0 }) { await Task.yield() }
            opening.cancel()
            await #expect(throws: CancellationError.self) { try await opening.value }
        } else {
            let error = try await #require(throws: TransferError.self) { try await opening.value }
            #expect(error.failureClass == .transient && error.code == .timedOut, "\(error)")
            #expect(error.message.contains("did not log in the user \(server.user) within"), "\(error)")
        }
        try await server.crash()
    }
}
