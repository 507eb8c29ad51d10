import Foundation
import ScriptedHTTP
import SystemPackage
import Testing

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
    @Test(arguments: [true, false]) func postsForm(isSessionSetting: Bool) async throws {
        let server = try ScriptedServer { _, _ in Self.accepted }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel.mov", bytes: Array("reel".utf8))
        try program.folder.file("reel.mov.xmp", bytes: Array("side".utf8))
        let scheme = isSessionSetting ? "http+put" : "http+form"
        try await program.succeed(
            "account", "add", "site", "\(scheme)://127.0.0.1:\(server.port)/upload", "--setting", "field.dc:project=blue")
        let added = try await program.run(
            ["add", "site", "reel.mov", "--metadata", "take=7", "--setting", "file.side={source}.xmp"]
                + (isSessionSetting ? ["--setting", "upload=form"] : []))
        #expect(added.status == 0, "\(added.diagnostics)")
        try await program.succeed("run", "--progress", "none")
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.headers["content-type"]?.hasPrefix("multipart/form-data") == true)
        let text = String(decoding: request.body, as: UTF8.self)
        for part in ["name=\"dc:project\"\r\n\r\nblue", "name=\"take\"\r\n\r\n7", "filename=\"reel.mov.xmp\"", "filename=\"reel.mov\""] {
            #expect(text.contains(part), "\(text)")
        }
    }

    /// The server's response is longer than the queue's default limit for stored responses.
    @Test func postsFormOfSeveralFiles() async throws {
        let response = String(repeating: "x", count: 5_000)
        let server = try ScriptedServer { _, _ in [.answer(201, body: response)] }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel.mov", bytes: Array("reel".utf8))
        try program.folder.file("a;b.pdf", bytes: Array("paper".utf8))
        try await program.succeed("account", "add", "site", "http+form://127.0.0.1:\(server.port)/upload/{path}")
        let added = try await program.run(
            "add", "site", "--to", "day", "--form", "title=Day=one", "--form", "reel=@reel.mov", "--form",
            "papers=@a;b.pdf;type=application/pdf;name=B.pdf", "--form", "note=;type=x", "--setting", "responseLimit=6000")
        try #require(added.status == 0, "\(added.diagnostics)")
        try await program.succeed("run", "--progress", "none")
        let request = try #require(server.requests.first)
        #expect(server.requests.count == 1 && request.method == "POST" && request.path == "/upload/day/reel.mov")
        let boundary = try #require(request.headers["content-type"]?.split(separator: "=").last)
        let parts = String(decoding: request.body, as: UTF8.self).components(separatedBy: "--\(boundary)").dropFirst().dropLast()
        let start = "\r\nContent-Disposition: form-data; name="
        #expect(
            parts == [
                start + "\"title\"\r\n\r\nDay=one\r\n",
                start + "\"reel\"; filename=\"reel.mov\"\r\nContent-Type: video/quicktime\r\n\r\nreel\r\n",
                start + "\"papers\"; filename=\"B.pdf\"\r\nContent-Type: application/pdf\r\n\r\npaper\r\n",
                start + "\"note\"\r\n\r\n;type=x\r\n",
            ])
        let session = try #require(try await program.succeed("show", added.lines[0], "--json").objects().first)
        let item = try #require((session["items"] as? [[String: Any]])?.first)
        #expect((item["answer"] as? [String: Any])?["text"] as? String == response)
        let files = try #require(item["formFiles"] as? [[String: Any]])
        #expect(files.compactMap { $0["field"] as? String } == ["reel", "papers"])
        #expect(files.compactMap { $0["mediaType"] as? String } == ["application/pdf"])
        #expect(session["bytesDone"] as? Int == 9 && session["bytesTotal"] as? Int == 9)
        let shown = try await program.succeed("show", added.lines[0]).output
        #expect(shown.contains("the form's field papers has 5 B of B.pdf (application/pdf)"), "\(shown)")
    }

    @Test func rejectsInvalidForms() async throws {
        let program = try TransferQ()
        try program.folder.file("reel", size: 1)
        try await program.succeed("account", "add", "site", "http+form://127.0.0.1:1/upload")
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:1/in/")
        try await program.succeed("account", "add", "studio", "http://127.0.0.1:1/files/")
        let cases: [([String], String)] = [
            (["site", "reel", "--form", "a=@reel"], "--form and paths"), (["site", "--form", "a=b"], "at least one file"),
            (["site", "--form", "@reel"], "--form"), (["site", "--form", "a=@reel", "--each"], "--each"),
            (["bucket", "--form", "a=@reel"], "https+form://"), (["studio", "--form", "a=@reel"], "can't send forms"),
            (["site", "--form", "a=@missing"], "missing"),
        ]
        for (arguments, words) in cases {
            let refused = try await program.run(["add"] + arguments)
            #expect(refused.status != 0 && refused.diagnostics.contains(words), "\(arguments): \(refused.diagnostics)")
        }
        #expect(try await program.succeed("list", "--json").lines.isEmpty)
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
