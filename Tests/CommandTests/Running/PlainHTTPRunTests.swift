import Foundation
import ScriptedHTTP
import SystemPackage
import Testing

/// Transfers over plain HTTP with the command.
@Suite struct PlainHTTPRunTests {
    private static let accepted: [ServerStep] = [.answer(201, ["Content-Type": "text/plain"], body: "thank you")]

    @Test func putsFile() async throws {
        let server = try ScriptedServer { _, _ in Self.accepted }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel", size: 1_000)
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/{path}?signature=abc")
        let id = try await program.succeed("add", "bucket", "reel", "--to", "day").lines[0]
        try await program.succeed("run", "--progress", "none")
        let request = try #require(server.requests.first)
        #expect(request.method == "PUT" && request.path == "/in/day/reel?signature=abc")
        #expect(Data(request.body) == FileManager.default.contents(atPath: program.folder.path.appending("reel").string))
        let item = try #require((try await program.succeed("show", id, "--json").objects().first?["items"] as? [[String: Any]])?.first)
        #expect(item["remoteURL"] as? String == "http://127.0.0.1:\(server.port)/in/day/reel", "the URL is shown without the signature")
        #expect((item["answer"] as? [String: Any])?["text"] as? String == "thank you")
    }

    /// With plain HTTP, the server decides whether to replace files. The command therefore rejects overwrite policies that the client can't
    /// guarantee.
    @Test(arguments: ["never", "skip", "newer"]) func rejectsOverwritePolicies(policy: String) async throws {
        let program = try TransferQ()
        try program.folder.file("reel", size: 1)
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:1/in/{path}")
        let refused = try await program.run("add", "bucket", "reel", "--overwrite", policy)
        #expect(refused.status == 2 && refused.diagnostics.contains("--overwrite"))
        try await program.succeed("add", "bucket", "reel", "--overwrite", "always")
        try await program.succeed("add", "bucket", "other", "--download", "--overwrite", policy)
        #expect(try await program.succeed("list", "--json").lines.count == 2)
    }

    /// The upload method comes from the account or from the session.
    @Test(arguments: [true, false]) func postsForm(isOfSession: Bool) async throws {
        let server = try ScriptedServer { _, _ in Self.accepted }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel.mov", bytes: Array("reel".utf8))
        try program.folder.file("reel.mov.xmp", bytes: Array("side".utf8))
        let scheme = isOfSession ? "http+put" : "http+form"
        try await program.succeed(
            "account", "add", "site", "\(scheme)://127.0.0.1:\(server.port)/upload", "--setting", "field.dc:project=blue")
        let added = try await program.run(
            ["add", "site", "reel.mov", "--metadata", "take=7", "--setting", "file.side={source}.xmp"]
                + (isOfSession ? ["--setting", "upload=form"] : []))
        #expect(added.status == 0, "\(added.diagnostics)")
        try await program.succeed("run", "--progress", "none")
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.headers["content-type"]?.hasPrefix("multipart/form-data") == true)
        let text = String(decoding: request.body, as: UTF8.self)
        for part in ["name=\"dc:project\"\r\n\r\nblue", "name=\"take\"\r\n\r\n7", "filename=\"reel.mov.xmp\"", "filename=\"reel.mov\""] {
            #expect(text.contains(part), "\(text)")
        }
    }

    @Test func verifiesDownload() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200, body: "0123456789")] }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "site", "http+get://127.0.0.1:\(server.port)/files/")
        let right = "sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
        try await program.succeed("add", "site", "reel", "--download", "--checksum", right)
        try await program.succeed("run", "--progress", "none")
        #expect(FileManager.default.contents(atPath: program.folder.path.appending("reel").string) == Data("0123456789".utf8))
        try await program.succeed("add", "site", "other", "--download", "--checksum", "sha256:" + String(repeating: "0", count: 64))
        #expect(try await program.run("run", "--progress", "none").status == 1)
        #expect(FileManager.default.contents(atPath: program.folder.path.appending("other").string) == nil)
    }
}
