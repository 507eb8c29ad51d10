import Foundation
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

@Suite(.timeLimit(.minutes(10)))
struct AuthenticationTests {
    private typealias KeyType = SSHServerProcess.KeyType

    private func makeKey(
        _ server: SSHServerProcess, _ type: SSHServerProcess.KeyType, passphrase: String = "", isAuthorized: Bool = true,
        options: [String] = []
    ) async throws -> FilePath {
        let file = server.folder.appending(path: "key_\(UUID().uuidString)")
        try await SSHServerProcess.runBlocking {
            try SSHServerProcess.makeKey(at: file, type: type, passphrase: passphrase, options: options)
            if isAuthorized { try server.authorize(file.path + ".pub") }
        }
        return FilePath(file.path)
    }

    private func failure(_ server: SSHServerProcess, _ settings: SSHSettings, secrets: [String: String] = [:]) async throws -> TransferError
    {
        try await #require(throws: TransferError.self) { try await server.connect(settings, secrets: secrets) }
    }

    @Test func `keys of both types and formats work, with and without a passphrase`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        for (type, options) in [(KeyType.ed25519, []), (.ecdsa, []), (.ecdsa, ["-m", "PEM"])] {
            for passphrase in ["", "as long as it takes"] {
                let path = try await makeKey(server, type, passphrase: passphrase, options: options)
                var settings = try server.settings()
                let reference = CredentialReference(kind: .password, source: .environment("PASSPHRASE"))
                settings.authentication.keyFiles = [.init(path: path, passphrase: passphrase.isEmpty ? nil : reference)]
                let connection = try await server.connect(settings, secrets: ["PASSPHRASE": passphrase])
                #expect(connection.agreement.authenticationMethod == "publickey (\(path))")
                await connection.close()
            }
        }
    }

    @Test func `key files are tried in order, and the error lists each failure`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let unauthorized = try await makeKey(server, .ed25519, isAuthorized: false)
        let encrypted = try await makeKey(server, .ed25519, passphrase: "right one")
        var settings = try server.settings()
        settings.authentication.keyFiles = [
            .init(path: "/nonexistent/key"), .init(path: unauthorized), .init(path: FilePath(server.userKey)),
        ]
        try await server.connect(settings).close()

        let passphrase = CredentialReference(kind: .password, source: .environment("PASSPHRASE"))
        settings.authentication.keyFiles = [
            .init(path: "/nonexistent/key"), .init(path: unauthorized), .init(path: FilePath(server.userKey + ".pub")),
            .init(path: encrypted),
            .init(path: encrypted, passphrase: passphrase), .init(path: encrypted, passphrase: .password(.environment("UNSET"))),
        ]
        let error = try await failure(server, settings, secrets: ["PASSPHRASE": "wrong one"])
        #expect(error.failureClass == .credentials)
        #expect(error.code == .credentialsRejected)
        for words in [
            "the key file \(unauthorized)", "/nonexistent/key can't be read", "contains a public key", "no passphrase is given",
            "the passphrase may be wrong", "There is no such secret",
        ] {
            #expect(error.message.contains(words), "\(error.message)")
        }
        #expect(!error.description.contains("wrong one"))
    }

    /// libssh2 reports a damaged key file with the same error code as an invalid packet from the server.
    @Test func `a damaged key file does not end the connection`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let damaged = try await makeKey(server, .ed25519)
        // The first lines contain the public key. Without the later lines, the private key is incomplete.
        let lines = try String(contentsOfFile: damaged.string, encoding: .utf8).split(separator: "\n")
        let text = (lines.prefix(3) + lines.suffix(1)).joined(separator: "\n") + "\n"
        try Data(text.utf8).write(to: URL(filePath: damaged.string))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: damaged.string)
        var settings = try server.settings()
        settings.authentication.keyFiles = [.init(path: damaged), .init(path: FilePath(server.userKey))]
        let connection = try await server.connect(settings)
        #expect(connection.agreement.authenticationMethod == "publickey (\(server.userKey))")
        await connection.close()
        settings.authentication.keyFiles = [.init(path: damaged)]
        let error = try await failure(server, settings)
        #expect(error.failureClass == .credentials && error.message.contains("\(damaged): it can't be used"), "\(error.message)")
    }

    @Test func `a key file that other users can read is rejected`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let key = try await makeKey(server, .ed25519)
        var settings = try server.settings()
        settings.authentication.keyFiles = [.init(path: key)]
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: key.string)
        let error = try await failure(server, settings)
        #expect(error.failureClass == .credentials && error.message.contains("chmod 600 '\(key)'"), "\(error.message)")
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: key.string)
        try await server.connect(settings).close()
    }

    @Test func `the error for an RSA key with an old library recommends alternatives`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let path = try await makeKey(server, .rsa)
        var settings = try server.settings()
        settings.authentication.keyFiles = [.init(path: path)]
        guard SSHConnection.libraryVersion.hasPrefix("1.10.") || SSHConnection.libraryVersion.hasPrefix("1.9.") else {
            return try await server.connect(settings).close()
        }
        let error = try await failure(server, settings)
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("use an ed25519 or ecdsa key, or libssh2 1.11 or later"), "\(error.message)")
    }

    @Test func `the keys of an agent come first, and a missing agent is reported`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let socket = server.folder.appending(path: "agent")
        let agent = try GuardedProcess(["/usr/bin/ssh-agent", "-D", "-a", socket.path], log: server.folder.appending(path: "agent_log"))
        defer { agent.stop() }
        let keys = [
            try await makeKey(server, .rsa), try await makeKey(server, .ed25519, isAuthorized: false), try await makeKey(server, .ecdsa),
        ]
        try await SSHServerProcess.runBlocking {
            // ssh-add fails until the agent listens.
            while !FileManager.default.fileExists(atPath: socket.path) { usleep(2_000) }
            try SSHServerProcess.run("/usr/bin/ssh-add", ["-q"] + keys.map(\.string), environment: ["SSH_AUTH_SOCK": socket.path])
        }
        var settings = try server.settings()
        settings.authentication = SSHAuthentication()
        settings.authentication.agent = .socket(FilePath(socket.path))
        let connection = try await server.connect(settings)
        #expect(connection.agreement.authenticationMethod.hasPrefix("publickey (agent, SHA256:"))
        await connection.close()

        // Without an agent, the client uses the key file. Without a key file, the error names the missing agent.
        settings.authentication.agent = .socket("/nonexistent/agent")
        settings.authentication.keyFiles = [.init(path: FilePath(server.userKey))]
        try await server.connect(settings).close()
        settings.authentication.keyFiles = []
        let error = try await failure(server, settings)
        #expect(error.failureClass == .credentials)
        #expect(error.code == .credentialsUnavailable)
        #expect(error.message.contains("/nonexistent/agent"))
    }

    /// The agent never responds, for example because it is suspended or waits for a smart card.
    @Test func `key files are tried after an unresponsive agent has timed out`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let path = FilePath(server.folder.appending(path: "mute").path)
        let socket = try makeMuteSocket(at: path)
        defer { close(socket) }
        var settings = try server.settings()
        settings.authentication.agent = .socket(path)
        settings.authentication.agentListTimeout = .milliseconds(50)
        let connection = try await server.connect(settings)
        #expect(connection.agreement.authenticationMethod == "publickey (\(server.userKey))")
        await connection.close()
        settings.authentication.keyFiles = []
        let error = try await failure(server, settings)
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("the agent at \(path): it did not respond in time"), "\(error)")
    }

    /// Creates a listening socket that never accepts connections, so clients wait for a response.
    private func makeMuteSocket(at path: FilePath) throws -> CInt {
        #if canImport(Glibc)
            let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.string.utf8)
        try #require(name.count < MemoryLayout.size(ofValue: address.sun_path))
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && listen(descriptor, 8) == 0)
        return descriptor
    }

    @Test func `credentials count as rejected when the client or the server allows no more attempts`() async throws {
        let server = try await SSHServerProcess.start(options: ["MaxAuthTries 3"])
        defer { server.stop() }
        var files: [SSHAuthentication.KeyFile] = []
        for _ in 0..<4 { files.append(.init(path: try await makeKey(server, .ed25519, isAuthorized: false))) }
        var settings = try server.settings()
        settings.authentication.keyFiles = files
        settings.authentication.maximumAttempts = 2
        let limited = try await failure(server, settings)
        #expect(limited.failureClass == .credentials)
        #expect(!limited.message.contains(files[2].path.string))
        // The server permits fewer attempts and closes the connection. The error must report rejected credentials, not a lost connection.
        settings.authentication.maximumAttempts = 9
        let refused = try await failure(server, settings)
        #expect(refused.failureClass == .credentials, "\(refused)")
    }
}
