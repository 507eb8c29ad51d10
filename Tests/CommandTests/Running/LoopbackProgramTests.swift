import Foundation
import ProcessFixture
import SystemPackage
import Testing

/// The program `tus-loopback`, against which app developers test the resumable uploads of URLSession.
@Suite struct LoopbackProgramTests {
    /// The program supports the draft version that `--dialect` names, and breaks the connection of the first upload.
    @Test func speaksChosenVersion() async throws {
        let program = try TransferQ()
        let executable = TransferQ.executable.removingLastComponent().appending("tus-loopback")
        let server = try StartedProgram(
            executable.string,
            [
                "--folder", program.folder.path.appending("server").string, "--dialect", "8", "--cut-after", "1000000",
                "--progress-interval", "500000",
            ])
        let line = String(decoding: try server.read(), as: UTF8.self)
        let url = try #require(line.wholeMatch(of: /listening on (http:\S+)\n/)?.1)
        try await program.succeed("account", "add", "phone", "rufh+\(url)")
        let check = try #require(try await program.succeed("account", "check", "phone", "--json").objects().first)
        #expect(check["version"] as? String == "Resumable Uploads for HTTP (draft version 8)")
        try program.folder.file("reel", size: 3 << 20, seed: 1)
        let id = try await program.succeed("add", "phone", "reel").lines[0]
        try await program.succeed("run", "--progress", "none")
        let session = try #require(try await program.succeed("show", id, "--json").objects().first)
        #expect(session["state"] as? String == "completed")
        server.kill()
    }
}
