import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite(.serialized) struct DownloadTests {
    /// Uploads a file and returns its name on the server.
    private func upload(_ name: String, to studio: LoopbackStudio) async throws -> String {
        let id = try await studio.program.succeed("add", "studio", name).lines[0]
        try await studio.program.succeed("run", "--progress", "none")
        let item = try #require((try await studio.session(id)["items"] as? [[String: Any]])?.first)
        return try #require((item["remoteURL"] as? String)?.split(separator: "/").last.map(String.init))
    }

    @Test(arguments: [nil, "in"] as [String?])
    func downloadsUploadedFile(folder: String?) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let local = program.folder.path
            try program.folder.file("reel", size: 3_000_000, seed: 9)
            let name = try await upload("reel", to: studio)
            if let folder = folder.map(local.appending) {
                try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
            }
            let option = folder.map { ["--to", $0] } ?? []
            let id = try await program.run(["add", "studio", "--download", "-"] + option, input: Array("\(name)\n".utf8)).lines[0]
            let waiting = try #require(try await program.succeed("list", "--json", "--state", "waiting").objects().first)
            #expect(waiting["direction"] as? String == "download" && waiting["bytesTotal"] is NSNull)
            try await program.succeed("run", "--json")
            let path = (folder.map(local.appending) ?? local).appending(name).string
            #expect(FileManager.default.contentsEqual(atPath: path, andPath: local.appending("reel").string))
            let session = try await studio.session(id)
            #expect(session["state"] as? String == "completed" && session["bytesDone"] as? Int == 3_000_000)
            #expect((session["items"] as? [[String: Any]])?.first?["source"] as? String == path)
        }
    }

    @Test func rejectsExistingFileUnlessOverwriting() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("reel", size: 1_000, seed: 9)
            let name = try await upload("reel", to: studio)
            try program.folder.file(name, size: 10)
            let refused = try await program.run("add", "studio", name, "--download")
            #expect(refused.status == 2 && refused.diagnostics.contains(name))
            #expect(try await program.succeed("list", "--state", "waiting", "--json").output == "")
            try await program.succeed("add", "studio", name, "--download", "--overwrite", "always")
            try await program.succeed("run", "--progress", "none")
            let local = program.folder.path
            #expect(FileManager.default.contentsEqual(atPath: local.appending(name).string, andPath: local.appending("reel").string))
        }
    }

    /// The command creates the destination folder. As for `mkdir`, the parent folder must exist.
    @Test(arguments: [["download", "studio", "x"], ["add", "studio", "x", "--download"]])
    func createsDestination(command: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        for _ in 0..<2 { try await program.succeed(command + ["--to", "new"]) }
        #expect(FileManager.default.fileExists(atPath: program.folder.path.appending("new").string))
    }

    @Test(arguments: [["../x"], ["/x"], ["x", "--to", "missing/folder"], ["x", "--to", "file"], ["x", "y/x"]])
    func rejectsInvalidDestinations(arguments: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("file", size: 1)
        let result = try await program.run(["add", "studio", "--download"] + arguments)
        #expect(result.status == 2, "\(result.diagnostics)")
    }
}
