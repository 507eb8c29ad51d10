import Foundation
import SSHEngine
import SSHFixture
import SystemPackage
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct AgreementTests {
    @Test func `safe and fast methods are preferred`() async throws {
        let server = try await SSHServerProcess.start(hostKeys: [.ed25519, .ecdsa])
        defer { server.stop() }
        let connection = try await server.connect()
        var methods = connection.agreement.methods
        #expect(methods.removeFirst().hasSuffix("25519-sha256"), "\(methods)")
        #expect(methods == ["ssh-ed25519", "aes128-ctr", "aes128-ctr", "hmac-sha2-256", "hmac-sha2-256"])
        await connection.close()
    }

    @Test(arguments: ["Ciphers aes128-cbc,aes256-cbc", "Ciphers 3des-cbc", "MACs hmac-md5", "MACs hmac-md5-96"], [false, true])
    func `a server without a safe method is rejected`(option: String, allowsSHA1: Bool) async throws {
        let server = try await SSHServerProcess.start(options: [option])
        defer { server.stop() }
        var settings = try server.settings()
        settings.allowsSHA1 = allowsSHA1
        try await expectRefusal(server, settings)
    }

    @Test(arguments: ["MACs hmac-sha1", "KexAlgorithms diffie-hellman-group14-sha1"])
    func `SHA-1 is used only if permitted`(option: String) async throws {
        let server = try await SSHServerProcess.start(options: [option])
        defer { server.stop() }
        try await expectUsedOnlyIfAllowed(server, named: "sha1")
    }

    @Test func `a host key with SHA-1 signatures is accepted only if permitted`() async throws {
        let server = try await SSHServerProcess.start(hostKeys: [.rsa], options: ["HostKeyAlgorithms ssh-rsa"])
        defer { server.stop() }
        try await expectUsedOnlyIfAllowed(server, named: "ssh-rsa")
    }

    private func expectUsedOnlyIfAllowed(_ server: SSHServerProcess, named name: String) async throws {
        var settings = SSHSettings(host: "127.0.0.1", port: server.port, user: server.user)
        settings.authentication.agent = .none
        settings.authentication.keyFiles = [.init(path: FilePath(server.userKey))]
        settings.hostKeys = HostKeyPolicy(trust: .acceptNew, userFile: FilePath(server.folder.appending(path: "known").path))
        try await expectRefusal(server, settings)
        settings.allowsSHA1 = true
        let connection = try await server.connect(settings)
        #expect(connection.agreement.methods.contains { $0.contains(name) }, "\(connection.agreement.methods)")
        await connection.close()
    }

    private func expectRefusal(_ server: SSHServerProcess, _ settings: SSHSettings) async throws {
        let error = try await #require(throws: TransferError.self) { try await server.connect(settings) }
        #expect(error.failureClass == .unsupported && error.code == .unsupported, "\(error)")
        #expect(error.message.contains("and this machine have no safe algorithm in common"), "\(error)")
        #expect(error.message.contains("allowSHA1") && error.message.contains("CBC"), "\(error)")
    }
}
