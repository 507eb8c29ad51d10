import Foundation
import SSHEngine
import SSHFixture
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(2)))
struct PasswordTests {
    /// A server where passwords are known.
    private func start(_ options: [String]) async throws -> SSHServerProcess {
        let folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-passwords-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let library = try await SSHServerProcess.awayFromThePool {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return try PasswordLibrary.make(in: folder)
        }
        return try await SSHServerProcess.start(options: options, preload: library)
    }

    private func settings(_ server: SSHServerProcess, hasKey: Bool = false) throws -> SSHSettings {
        var settings = try server.settings()
        if !hasKey { settings.authentication.keyFiles = [] }
        settings.authentication.password = .password(.environment("PASSWORD"))
        return settings
    }

    private func check(_ server: SSHServerProcess, by method: String) async throws {
        let connection = try await server.connect(try settings(server), secrets: ["PASSWORD": PasswordLibrary.password])
        #expect(connection.agreement.authenticationMethod == method)
        #expect(try await connection.run(Array("echo in".utf8)).output == Array("in\n".utf8))
        await connection.close()
        let wrong = try await #require(throws: TransferError.self) {
            try await server.connect(try settings(server), secrets: ["PASSWORD": "the wrong one"])
        }
        #expect(wrong.failureClass == .credentials)
        #expect(wrong.code == .credentialsRejected)
        #expect(!wrong.description.contains("the wrong one"))
        let missing = try await #require(throws: TransferError.self) { try await server.connect(try settings(server)) }
        #expect(missing.failureClass == .credentials)
        #expect(missing.message.contains("There is no such secret"))
    }

    @Test func `a password lets in`() async throws {
        try await check(try await start(["PasswordAuthentication yes"]), by: "password")
    }

    @Test func `questions are answered by the password where it would not be shown`() async throws {
        try await check(try await start(["UsePAM yes", "KbdInteractiveAuthentication yes"]), by: "keyboard-interactive")
    }

    @Test func `a server may want a key and a password`() async throws {
        let server = try await start(["PasswordAuthentication yes", "AuthenticationMethods publickey,password"])
        let connection = try await server.connect(
            try settings(server, hasKey: true), secrets: ["PASSWORD": PasswordLibrary.password])
        #expect(connection.agreement.authenticationMethod == "password")
        await connection.close()
    }

    @Test func `without a password named, none is asked for`() async throws {
        let server = try await start(["PasswordAuthentication yes"])
        var settings = try settings(server)
        settings.authentication.password = nil
        let connecting = settings
        let error = try await #require(throws: TransferError.self) { try await server.connect(connecting) }
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("Name a key file or a password"))
    }
}
