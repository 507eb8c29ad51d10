import Foundation
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct DiagnosisTests {
    @Test(arguments: [["doctor"], ["account", "check", "silent"]])
    func reportsSilentServer(command: [String]) async throws {
        let program = try TransferQ()
        let server = try SilentServer()
        try await program.succeed("account", "add", "silent", server.url)
        let result = try await program.run(command + ["--timeout", "0.2"])
        #expect(result.status == 1, "\(result.testDescription)")
        #expect(result.output.contains("did not respond within 0.2 seconds"))
        let finding = try await program.run(command + ["--timeout", "0.2", "--json"]).objects().last
        #expect((finding?["error"] as? [String: Any])?["code"] as? String == "timedOut")
        withExtendedLifetime(server) {}
    }

    @Test func releasesQueueBeforeConnecting() async throws {
        let program = try TransferQ()
        let server = try SilentServer()
        try await program.succeed("account", "add", "silent", server.url)
        let doctor = try program.start(["doctor", "--timeout", "3600"])
        let connection = await server.connection()
        try await program.succeed("list")
        doctor.send(SIGTERM)
        #expect(await doctor.result().wasKilled)
        try connection.close()
    }

    @Test(.timeLimit(.minutes(10))) func describesSFTPServer() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let program = try TransferQ()
        let address = "sftp://\(server.user)@127.0.0.1:\(server.port)\(server.folder.path)/"
        try await program.succeed(
            "account", "add", "archive", address, "--identity", server.userKey, "--known-hosts", "hosts", "--host-key", "accept-new")
        let finding = try #require(try await program.succeed("account", "check", "archive", "--json").objects().first)
        let key = try #require(finding["hostKey"] as? String)
        #expect(key.hasPrefix("SHA256:"))
        let limits = try #require(finding["limits"] as? [String: Int])
        #expect(limits["packet"] ?? 0 > 0 && limits["read"] ?? 0 > 0 && limits["write"] ?? 0 > 0)
        let text = try await program.succeed("account", "check", "archive").output
        #expect(text.contains("host key \(key)") && text.contains("packet limit \(limits["packet"] ?? 0)"))
    }

    @Test(arguments: ["0", "-1", "nan", "x"]) func rejectsInvalidTimeout(timeout: String) async throws {
        #expect(try await TransferQ().run("doctor", "--timeout", timeout).status == 2)
    }

    /// Another user could have read the token, so the commands reject the file.
    @Test func rejectsCredentialFileReadableByOthers() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let file = try program.folder.file("token", bytes: Array("hunter2".utf8))
            try await program.succeed("account", "edit", "studio", "--token-file", "token")
            try await program.succeed("account", "check", "studio")
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.string)
            let result = try await program.run("account", "check", "studio")
            #expect(result.status == 1)
            #expect(result.output.contains("\(file) is accessible to other users. Run `chmod 600 \(file)`."))
            #expect(!result.output.contains("hunter2"))
            try program.folder.file("a", size: 1)
            try await program.succeed("add", "studio", "a")
            #expect(try await program.run("run", "--progress", "none").status == 1)
            #expect(studio.server.statistics.uploads.isEmpty)
        }
    }
}
