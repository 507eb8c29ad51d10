import Foundation
import SSHFixture
import SystemPackage
import Testing

/// The commands `upload` and `download`. Each has the options of `add` for its direction.
@Suite(.serialized) struct UploadDownloadTests {
    @Test func uploadAddsSameSessionAsAdd() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/files/")
        for name: String in ["a", "b"] { try program.folder.file(name, size: 10) }
        let words = ["studio", "a", "b", "--to", "x", "--name", "Day one", "--tag", "t", "--metadata", "k=v", "--json"]
        var sessions: [[String: Any]] = []
        for command in ["add", "upload"] {
            let id = try #require(try await program.succeed([command] + words).objects().first?["id"] as? String)
            sessions.append(try #require(try await program.succeed("show", id, "--json").objects().first))
        }
        for key in ["name", "direction", "account", "files", "bytesTotal", "tags", "state"] {
            #expect("\(sessions[0][key] ?? "")" == "\(sessions[1][key] ?? "")", "\(key)")
        }
        let items = try sessions.map { try #require($0["items"] as? [[String: Any]]) }
        #expect(items[0].map { $0["destination"] as? String } == ["x/a", "x/b"])
        #expect(items[1].map { $0["destination"] as? String } == ["x/a", "x/b"])
    }

    @Test(arguments: [
        ["upload", "studio", "a", "--checksum", "md5:00"], ["upload", "studio", "a", "--download"],
        ["download", "studio", "a", "--metadata", "k=v"], ["download", "studio", "a", "--copy"],
        ["download", "studio", "a", "--symlinks", "skip"],
        ["download", "studio", "--form", "a=@a"], ["download", "studio", "a", "--creation-url", "https://one.example/"],
        ["upload", "studio"],
        ["download", "studio"],
    ])
    func rejectsOptionsOfOtherDirectionAndMissingPaths(words: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let refused = try await program.run(words)
        #expect(refused.status == 2, "\(refused.testDescription)")
        if words.count > 3 {
            #expect(refused.diagnostics.contains(words.first { $0.hasPrefix("--") } ?? ""), "\(refused.diagnostics)")
        }
        #expect(try await program.succeed("list", "--json").output == "")
    }

    @Test(arguments: [["--metadata", "k=v"], ["--creation-url", "https://one.example/"], ["--copy"]])
    func addRejectsUploadOptionsForDownload(option: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https+put://one.example/")
        let refused = try await program.run(["add", "studio", "a", "--download"] + option)
        #expect(refused.status == 2 && refused.diagnostics.contains("\(option[0]) is for uploads"), "\(refused.testDescription)")
        #expect(try await program.succeed("list", "--json").output == "")
    }

    @Test func quietOmitsWarnings() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "https+put://one.example/")
        try program.folder.file("a", size: 1)
        #expect(try await program.succeed("upload", "bucket", "a", "--chunk", "5").diagnostics.contains("--chunk has no effect"))
        #expect(try await program.succeed("upload", "bucket", "a", "--chunk", "5", "--quiet").diagnostics == "")
    }

    /// The content of the endpoint's folder arrives directly in the destination folder, not in a new subfolder.
    @Test(arguments: ["/", "."]) func downloadsWholeFolder(path: String) async throws {
        let ssh = try await SSHServerProcess.start()
        defer { ssh.stop() }
        var program = try TransferQ()
        program.environment = ["SSH_AUTH_SOCK": ""]
        for folder in ["remote/in/deep", "local"] {
            try FileManager.default.createDirectory(
                atPath: program.folder.path.pushing(FilePath(folder)).string, withIntermediateDirectories: true)
        }
        for name in ["top", "in/a", "in/deep/b"] { try program.folder.file("remote/\(name)", size: 1_000, seed: UInt64(name.utf8.count)) }
        let remote = program.folder.path.appending("remote")
        try await program.succeed(
            "account", "add", "nas", "sftp://\(ssh.user)@127.0.0.1:\(ssh.port)\(remote)/", "--identity", ssh.userKey, "--known-hosts",
            "hosts",
            "--host-key", "accept-new")
        let several = try await program.run("download", "nas", path, "top", "--to", "local")
        #expect(several.status == 2 && several.diagnostics.contains("only item"), "\(several.testDescription)")
        let id = try await program.succeed("download", "nas", path, "--to", "local").lines[0]
        let waiting = try #require(try await program.succeed("show", id, "--json").objects().first)
        #expect(waiting["name"] as? String == "nas")
        #expect((waiting["items"] as? [[String: Any]])?.first?["destination"] as? String == "/")
        try await program.succeed("run", "--progress", "none")
        for name in ["top", "in/a", "in/deep/b"] {
            let paths = ["remote", "local"].map { program.folder.path.appending($0).pushing(FilePath(name)).string }
            #expect(FileManager.default.contentsEqual(atPath: paths[0], andPath: paths[1]), "\(name)")
        }
        let session = try #require(try await program.succeed("show", id, "--json").objects().first)
        #expect(session["state"] as? String == "completed" && session["filesDone"] as? Int == 3)
        #expect((session["items"] as? [[String: Any]])?.map { $0["destination"] as? String } == ["top", "in/a", "in/deep/b"])
    }

    @Test func rejectsWholeFolderOfServerWithoutListing() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let refused = try await program.run("download", "studio", "/")
        #expect(
            refused.status == 2 && refused.diagnostics.contains("The endpoint's folder can't be downloaded"), "\(refused.testDescription)")
    }
}
