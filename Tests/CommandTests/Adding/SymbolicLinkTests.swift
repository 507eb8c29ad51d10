import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// Links in folders are skipped by default, and skipped links are reported.
@Suite struct SymbolicLinkTests {
    @Test(
        arguments: [
            ([], ["day/reel"], 2), (["--symlinks", "skip"], ["day/reel"], 2),
            (["--symlinks", "follow-files"], ["day/file", "day/reel"], 1),
            (["--symlinks", "follow"], ["day/file", "day/folder/reel", "day/reel"], 0),
        ] as [([String], [String], Int)])
    func handlesLinksInFolder(options: [String], sent: [String], skipped: Int) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for folder in ["day", "other"] {
                let path = program.folder.path.appending(folder).string
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                try program.folder.file("\(folder)/reel", size: 10)
            }
            for (name, target) in [("file", "../other/reel"), ("folder", "../other")] {
                try FileManager.default.createSymbolicLink(
                    atPath: program.folder.path.appending("day").appending(name).string, withDestinationPath: target)
            }
            let id = try await program.succeed(["add", "studio", "day"] + options).lines[0]
            let run = try await program.succeed("run")
            let items = try #require(try await studio.session(id)["items"] as? [[String: Any]])
            func names(_ state: String) -> [String] {
                items.filter { $0["state"] as? String == state }.compactMap { $0["destination"] as? String }.sorted()
            }
            #expect(names("completed") == sent)
            #expect(names("skipped").count == skipped)
            let entries = skipped == 1 ? "1 entry of" : "\(skipped) entries of"
            #expect(run.diagnostics.contains(entries) == (skipped > 0), "\(run.diagnostics)")
        }
    }

    @Test func followsNamedLink() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("reel", size: 10)
            try FileManager.default.createSymbolicLink(
                atPath: program.folder.path.appending("link").string, withDestinationPath: "reel")
            try await program.succeed("add", "studio", "link")
            try await program.succeed("run")
            #expect(studio.server.storedFiles(named: "link").count == 1)
        }
    }

    /// In the process that owns the queue, /proc/self would refer to that process, so the command resolves the path itself.
    @Test func resolvesPathOfItsOwnProcess() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("reel", size: 10)
            let id = try await program.succeed("add", "studio", "/proc/self/cwd/reel", "--symlinks", "follow").lines[0]
            let items = try #require(try await studio.session(id)["items"] as? [[String: Any]])
            #expect(items.first?["source"] as? String == program.folder.path.appending("reel").string)
        }
    }

    @Test func rejectsInvalidOptions() async throws {
        let program = try TransferQ()
        try program.folder.file("reel", size: 10)
        try await program.succeed("account", "add", "studio", "https://one.example/")
        for words in [["reel", "--symlinks", "some"], ["reel", "--download", "--symlinks", "skip"]] {
            let refused = try await program.run(["add", "studio"] + words)
            #expect(refused.status == 2 && refused.diagnostics.contains("--symlinks"), "\(refused.testDescription)")
        }
    }
}
