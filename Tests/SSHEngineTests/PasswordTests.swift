import Foundation
import SSHEngine
import SSHFixture
import SystemPackage
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

    @Test func `the password method authenticates the user`() async throws {
        try await check(["PasswordAuthentication yes"], by: "password")
    }

    @Test func `prompts with hidden input receive the password`() async throws {
        try await check(["UsePAM yes", "KbdInteractiveAuthentication yes"], by: "keyboard-interactive")
    }

    /// The client prefers keyboard-interactive, because it then sends the password only in response to prompts with hidden input. With the method
    /// `password`, it sends the password to any server that offers this method.
    @Test func `keyboard-interactive is tried before the password`() async throws {
        let server = try await start(["UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication yes", "LogLevel DEBUG1"])
        defer { server.stop() }
        let connection = try await server.connect(try settings(server), secrets: ["PASSWORD": PasswordLibrary.password])
        #expect(connection.agreement.authenticationMethod == "keyboard-interactive")
        await connection.close()
        #expect(server.requestedMethods == ["none", "keyboard-interactive"], "\(server.log)")
        let wrong = try await #require(throws: TransferError.self) {
            try await server.connect(try settings(server), secrets: ["PASSWORD": "the wrong one"])
        }
        #expect(wrong.message.contains("with the password (keyboard-interactive), the password;"), "\(wrong)")
        #expect(server.requestedMethods.dropFirst(2) == ["none", "keyboard-interactive", "password"], "\(server.log)")
    }

    @Test(arguments: [
        (["PasswordAuthentication yes", "PubkeyAuthentication no"], ["none", "password"]),
        // After the rejected key, the client requests the methods again, because the server may now offer a password method.
        ([], ["none", "publickey", "none"]),
    ]) func `only offered methods are tried`(options: [String], methods: [String]) async throws {
        let server = try await start(options + ["LogLevel DEBUG1"])
        defer { server.stop() }
        let unauthorized = server.folder.appending(path: "unauthorized")
        try await SSHServerProcess.runBlocking { try SSHServerProcess.makeKey(at: unauthorized, type: .ed25519) }
        var settings = try settings(server)
        settings.authentication.keyFiles = [.init(path: FilePath(unauthorized.path))]
        let trying = settings
        let error = try await #require(throws: TransferError.self) {
            try await server.connect(trying, secrets: ["PASSWORD": "the wrong one"])
        }
        #expect(error.code == .credentialsRejected)
        #expect(server.requestedMethods == methods, "\(server.log)")
    }

    @Test func `the successful method is logged, and no secret is`() async throws {
        let server = try await start(["PasswordAuthentication yes"])
        defer { server.stop() }
        let key = server.folder.appending(path: "locked")
        try await SSHServerProcess.runBlocking {
            try SSHServerProcess.makeKey(at: key, type: .ed25519, passphrase: "as long as it takes")
        }
        var settings = try settings(server)
        settings.authentication.keyFiles = [.init(path: FilePath(key.path), passphrase: .password(.environment("PASSPHRASE")))]
        var secrets = ["PASSWORD": PasswordLibrary.password, "PASSPHRASE": "as long as it takes"]
        let log = RecordedLog()
        // The key is authorized only for the second connection.
        for method in ["password", "publickey (\(key.path))"] {
            try await server.connect(settings, secrets: secrets, logger: log.logger).close()
            let metadata = try #require(log.metadata(of: "SSH connection established").last)
            #expect(metadata["authentication"] == method && metadata["user"] == server.user)
            #expect(metadata["methods"]?.contains("aes128-ctr") == true)
            try server.authorize(key.path + ".pub")
        }
        #expect(log.metadata(of: "SSH authentication refused").map { $0["method"] } == ["publickey (\(key.path))"])
        #expect(log.metadata(of: "SSH server recognized").count == 2)
        secrets["PASSWORD"] = "the wrong one"
        secrets["PASSPHRASE"] = "the wrong phrase"
        let (trying, wrong) = (settings, secrets)
        _ = try await #require(throws: TransferError.self) { try await server.connect(trying, secrets: wrong, logger: log.logger) }
        for secret in [PasswordLibrary.password, "as long as it takes", "the wrong one", "the wrong phrase"] {
            #expect(!log.text.contains(secret))
        }
    }

    @Test func `a server may require a key and a password`() async throws {
        let server = try await start(["PasswordAuthentication yes", "AuthenticationMethods publickey,password"])
        defer { server.stop() }
        let connection = try await server.connect(
            try settings(server, hasKey: true), secrets: ["PASSWORD": PasswordLibrary.password])
        #expect(connection.agreement.authenticationMethod == "password")
        await connection.close()
    }

    @Test func `without credentials, the error suggests a key file or a password`() async throws {
        let server = try await start(["PasswordAuthentication yes"])
        defer { server.stop() }
        var settings = try settings(server)
        settings.authentication.password = nil
        let connecting = settings
        let error = try await #require(throws: TransferError.self) { try await server.connect(connecting) }
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("Add a key file or a password"))
    }
}
