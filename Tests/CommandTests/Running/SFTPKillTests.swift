import Foundation
import SSHFixture
import SystemPackage
import Testing

/// `KillTests` with an OpenSSH server: transfers resume from the bytes in the part file.
@Suite(.timeLimit(.minutes(20))) struct SFTPKillTests {
    private static let size = 160 << 20
    /// The offset at which transfers stall, so that no run completes before it is killed. A run saves its first checkpoint after at most
    /// 64 MiB plus the bytes in transit, so each run can reach its first checkpoint before this offset.
    private static let stallOffset = 120 << 20
    private static let kills = max(TransferQ.kills / 2, 1)

    @Test(arguments: [true, false]) func transfersLargeFileDespiteKills(isUpload: Bool) async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        var program = try TransferQ()
        program.environment = ["SSH_AUTH_SOCK": ""]
        let (localFolder, remoteFolder) = (program.folder.path, FilePath(server.folder.path).appending("files"))
        try FileManager.default.createDirectory(atPath: remoteFolder.string, withIntermediateDirectories: false)
        let partFileFolder = URL(filePath: (isUpload ? remoteFolder : localFolder).string)
        let gate = TransferGate(of: partFileFolder, at: Int64(Self.stallOffset))
        let relay = try RawServer.relay(to: server.port, passes: gate.passes)
        defer { relay.stop() }
        try await program.succeed(
            "account", "add", "archive", "sftp://\(server.user)@127.0.0.1:\(relay.port)\(remoteFolder.string)/",
            "--identity", server.userKey, "--known-hosts", "hosts", "--host-key", "accept-new")
        let reel = try program.folder.file("reel", size: Self.size, seed: 3)
        if !isUpload { try FileManager.default.moveItem(atPath: reel.string, toPath: remoteFolder.appending("reel").string) }
        let id = try #require(try await program.run(["add", "archive", "reel"] + (isUpload ? [] : ["--download"])).lines.first)

        let direction: RawServer.Direction = isUpload ? .fromClient : .fromServer
        var done: Int64 = 0
        for round in 1...Self.kills {
            let isLast = round == Self.kills
            let threshold = Int64.random(in: 0...Int64(Self.stallOffset * round / Self.kills))
            try await program.runAndKill(round: round) { line in
                done = max(done, try CommandResult.object(line)["bytesDone"] as? Int64 ?? 0)
                // Kills the last run only after its first checkpoint.
                if isLast { return done > 0 }
                return TransferGate.partFileSize(in: partFileFolder) ?? 0 >= threshold
            }
        }
        let shown = try #require(try await program.succeed("show", id, "--json").objects().first)
        #expect(shown["state"] as? String == "waiting", "the last run was killed before it completed the session")
        _ = gate.takeCount(direction)
        gate.open()
        try await program.succeed("run", "--progress", "none")

        let sent = gate.takeCount(direction)
        #expect(sent <= (Int64(Self.size) - done) * 17 / 16, "the transfer resumes from a checkpoint, with an overhead of at most 1/16")
        let path = { (folder: FilePath) in folder.appending("reel").string }
        #expect(FileManager.default.contentsEqual(atPath: path(localFolder), andPath: path(remoteFolder)))
        #expect(try FileManager.default.contentsOfDirectory(atPath: remoteFolder.string) == ["reel"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: localFolder.string).allSatisfy { !$0.hasSuffix(".part") })
    }
}
