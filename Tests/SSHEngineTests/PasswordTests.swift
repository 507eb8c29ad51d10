import SSHEngine
import SSHFixture
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct PasswordTests {
    private func start(_ options: [String]) async throws -> SSHServerProcess {
        try await SSHServerProcess.start(options: options, knowsPasswords: true)
    }

    private func settings(_ server: SSHServerProcess, hasKey: Bool = false) throws -> SSHSettings {
        var settings = try server.settings()
        if !hasKey { settings.authentication.keyFiles = [] }
        settings.authentication.password = .password(.environment("PASSWORD"))
        return settings
    }

    private func check(_ options: [String], by method: String) async throws {
        let server = try await start(options)
        defer { server.stop() }
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
        try await check(["PasswordAuthentication yes"], by: "password")
    }

    @Test func `questions are answered by the password where it would not be shown`() async throws {
        try await check(["UsePAM yes", "KbdInteractiveAuthentication yes"], by: "keyboard-interactive")
    }

    @Test func `a server may want a key and a password`() async throws {
        let server = try await start(["PasswordAuthentication yes", "AuthenticationMethods publickey,password"])
        defer { server.stop() }
        let connection = try await server.connect(
            try settings(server, hasKey: true), secrets: ["PASSWORD": PasswordLibrary.password])
        #expect(connection.agreement.authenticationMethod == "password")
        await connection.close()
    }

    @Test func `without a password named, none is asked for`() async throws {
        let server = try await start(["PasswordAuthentication yes"])
        defer { server.stop() }
        var settings = try settings(server)
        settings.authentication.password = nil
        let connecting = settings
        let error = try await #require(throws: TransferError.self) { try await server.connect(connecting) }
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("Name a key file or a password"))
    }
}
