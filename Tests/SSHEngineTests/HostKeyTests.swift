import Foundation
import SSHEngine
import SSHFixture
import SystemPackage
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct HostKeyTests {
    private func refusal(_ server: SSHServerProcess, _ policy: HostKeyPolicy) async throws -> TransferError {
        var settings = try server.settings()
        settings.hostKeys = policy
        let connecting = settings
        return try await #require(throws: TransferError.self) { try await server.connect(connecting) }
    }

    private func fingerprint(_ server: SSHServerProcess, _ type: SSHServerProcess.KeyType) throws -> String {
        let base64 = try server.hostKey(type).split(separator: " ")[1]
        let bytes = try #require(Data(base64Encoded: String(base64)))
        return try #require(HostKey([UInt8](bytes))).fingerprint
    }

    private func file(_ server: SSHServerProcess, _ text: String) throws -> FilePath {
        let file = server.folder.appending(path: "known_\(UUID().uuidString)")
        try Data(text.utf8).write(to: file)
        return FilePath(file.path)
    }

    @Test func `an unknown host is rejected or, if new hosts are accepted, added to the known hosts`() async throws {
        let server = try await SSHServerProcess.start(hostKeys: [.ed25519, .ecdsa])
        defer { server.stop() }
        let path = FilePath(server.folder.appending(path: "new/known_hosts").path)
        let strict = try await refusal(server, HostKeyPolicy(userFile: path))
        #expect(strict.failureClass == .trust)
        #expect(strict.message.contains("is not known"))
        #expect(strict.message.contains(try fingerprint(server, .ed25519)))
        #expect(!FileManager.default.fileExists(atPath: path.string))

        var settings = try server.settings()
        settings.hostKeys = HostKeyPolicy(trust: .acceptNew, userFile: path)
        try await server.connect(settings).close()
        #expect(try String(contentsOfFile: path.string, encoding: .utf8) == "[127.0.0.1]:\(server.port) \(server.hostKey())\n")
        let mode = try FileManager.default.attributesOfItem(atPath: path.string)[.posixPermissions] as? Int
        #expect(mode == 0o600)

        // A second connection does not add the key again, and a strict policy now accepts it.
        try await server.connect(settings).close()
        settings.hostKeys.trust = .strict
        try await server.connect(settings).close()
        #expect(try String(contentsOfFile: path.string, encoding: .utf8).split(separator: "\n").count == 1)
    }

    @Test func `an added key starts a new line`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let path = try file(server, "example.com ssh-ed25519 AAAA")
        var settings = try server.settings()
        settings.hostKeys = HostKeyPolicy(trust: .acceptNew, userFile: path)
        try await server.connect(settings).close()
        let lines = try String(contentsOfFile: path.string, encoding: .utf8).split(separator: "\n")
        #expect(lines == ["example.com ssh-ed25519 AAAA", "[127.0.0.1]:\(server.port) \(try server.hostKey())"])
    }

    @Test func `the error for a changed key contains both fingerprints and the line`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let other = server.folder.appending(path: "other")
        try await SSHServerProcess.runBlocking { try SSHServerProcess.makeKey(at: other, type: .ed25519) }
        let key = try String(contentsOf: other.appendingPathExtension("pub"), encoding: .utf8).split(separator: " ").prefix(2)
        let path = try file(server, "# the second line counts\n[127.0.0.1]:\(server.port) \(key.joined(separator: " "))\n")
        for trust in [HostKeyPolicy.Trust.strict, .acceptNew] {
            let error = try await refusal(server, HostKeyPolicy(trust: trust, userFile: nil, systemFiles: [path]))
            #expect(error.failureClass == .trust)
            #expect(error.code == .serverNotTrusted)
            #expect(error.message.contains(try fingerprint(server, .ed25519)))
            let bytes = try #require(Data(base64Encoded: String(key[1])))
            #expect(error.message.contains(try #require(HostKey([UInt8](bytes))).fingerprint))
            #expect(error.message.contains("\(path):2"))
        }
    }

    @Test func `a connection to a server with several keys uses the known key`() async throws {
        let server = try await SSHServerProcess.start(hostKeys: [.ed25519, .ecdsa, .rsa])
        defer { server.stop() }
        for type in [SSHServerProcess.KeyType.ed25519, .ecdsa] {
            var settings = try server.settings()
            settings.hostKeys = HostKeyPolicy(userFile: FilePath(try server.knownHosts([type])))
            let connection = try await server.connect(settings)
            #expect(connection.agreement.hostKeyFingerprint == (try fingerprint(server, type)))
            await connection.close()
        }
        // The server is known only by its RSA key. If libssh2 can't request this key, the client accepts no other key, and the error names
        // the required version.
        var settings = try server.settings()
        settings.hostKeys = HostKeyPolicy(trust: .acceptNew, userFile: FilePath(try server.knownHosts([.rsa])))
        if SSHConnection.libraryVersion.hasPrefix("1.10.") || SSHConnection.libraryVersion.hasPrefix("1.9.") {
            let error = try await refusal(server, settings.hostKeys)
            #expect(error.failureClass == .trust)
            #expect(error.message.contains("libssh2 1.11 or later"))
        } else {
            try await server.connect(settings).close()
        }
    }

    @Test func `a revoked key is rejected`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let path = try file(
            server, "[127.0.0.1]:\(server.port) \(try server.hostKey())\n@revoked [127.0.0.1]:* \(try server.hostKey())\n")
        let error = try await refusal(server, HostKeyPolicy(userFile: path))
        #expect(error.failureClass == .trust)
        #expect(error.message.contains("revoked by \(path):2"))
    }

    @Test func `a pinned fingerprint needs no file and excludes other keys`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        var settings = try server.settings()
        settings.hostKeys = HostKeyPolicy(trust: .pinned(["SHA256:nonsense", try fingerprint(server, .ed25519)]), userFile: nil)
        try await server.connect(settings).close()
        let wrong = "SHA256:" + String(repeating: "A", count: 43)
        let error = try await refusal(server, HostKeyPolicy(trust: .pinned([wrong]), userFile: FilePath(try server.knownHosts())))
        #expect(error.failureClass == .trust)
        #expect(error.message.contains(wrong))
        #expect(error.message.contains(try fingerprint(server, .ed25519)))
    }

    @Test func `a pinned key of any type is found among several`() async throws {
        let server = try await SSHServerProcess.start(hostKeys: [.ed25519, .ecdsa])
        defer { server.stop() }
        var settings = try server.settings()
        for type in [SSHServerProcess.KeyType.ecdsa, .ed25519] {
            settings.hostKeys = HostKeyPolicy(trust: .pinned([try fingerprint(server, type)]), userFile: nil)
            let connection = try await server.connect(settings)
            #expect(connection.agreement.hostKeyFingerprint == (try fingerprint(server, type)))
            await connection.close()
        }
        let error = try await refusal(server, HostKeyPolicy(trust: .pinned(["SHA256:nonsense"]), userFile: nil))
        #expect(error.failureClass == .trust)
        for type in [SSHServerProcess.KeyType.ed25519, .ecdsa] {
            #expect(error.message.contains(try fingerprint(server, type)), "The error lists all keys of the server: \(error)")
        }
    }

    @Test func `an unreadable known hosts file is an error, because it may revoke a key`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let error = try await refusal(server, HostKeyPolicy(userFile: FilePath(server.folder.path)))
        #expect(error.failureClass == .trust)
        #expect(error.message.contains(server.folder.path))
    }

    @Test func `invalid lines and revoked keys are logged, and errors list invalid lines`() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let known = try String(contentsOfFile: server.knownHosts(), encoding: .utf8)
        let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4d0DuTGuDBlXEmqIKDiF9pTZvq9xbpNLXB4Bbd3LpW"
        let path = try file(server, "@revoked nonsense\n\(known)@revoked * \(other)\n")
        let log = RecordedLog()
        var settings = try server.settings()
        settings.hostKeys = HostKeyPolicy(userFile: path)
        try await server.connect(settings, logger: log.logger).close()
        #expect(log.metadata(of: "A line of a known hosts file").map { $0["line"] } == ["\(path):1"])
        #expect(log.metadata(of: "A key of the SSH server is revoked").map { $0["line"] } == ["\(path):3"])
        let invalid = try await refusal(server, HostKeyPolicy(userFile: try file(server, "nonsense\n")))
        #expect(invalid.message.contains("Invalid lines: "), "\(invalid)")
    }
}
