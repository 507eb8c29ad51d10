import Foundation
import SystemPackage
import Testing
import TransferCommands
import TransferKit

/// Drafts, and relative paths in arguments.
@Suite(.serialized) struct DraftCommandTests {
    private func program() async throws -> TransferQ {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        return program
    }

    private func ids(_ program: TransferQ, _ arguments: String...) async throws -> [String?] {
        try await program.succeed(["list", "--json"] + arguments).objects().map { $0["id"] as? String }
    }

    @Test func savesUpdatesEnqueuesAndRemovesDrafts() async throws {
        let program = try await program()
        let draft = try await program.succeed("add", "studio", "a", "--draft").lines[0]
        #expect(try await ids(program) == [])
        let shown = try await program.succeed("list", "--state", "draft", "--json").objects()
        #expect(shown.map { $0["id"] as? String } == [draft] && shown[0]["index"] is NSNull)
        let status = try #require(try await program.succeed("queue", "status", "--json").objects().first)
        #expect(status["sessions"] as? Int == 0 && status["drafts"] as? Int == 1)
        #expect(try await program.succeed("queue", "status").output.contains("1 draft"))
        #expect(try await program.succeed("why", draft).output.contains("transferq enqueue"))
        let now = try await program.run("now", draft)
        #expect(now.status == 4 && now.diagnostics.contains("transferq enqueue"))
        try await program.succeed("set", draft, "--name", "Day one")
        for option in [["--next"], ["--now"], ["--hold"], ["--at", "0"]] {
            #expect(try await program.run(["add", "studio", "a", "--draft"] + option).status == 2)
        }

        let other = try await program.succeed("add", "studio", "a").lines[0]
        #expect(try await program.succeed("enqueue", draft, "--at", "0").lines == [draft])
        #expect(try await ids(program) == [draft, other])
        #expect(try await program.run("enqueue", draft).status == 4)
        #expect(try await program.run("enqueue").status == 2)

        let drafts = try await program.succeed("add", "studio", "a", "a", "--each", "--draft").lines
        #expect(try await program.succeed("enqueue", "--all", "--hold").lines == drafts)
        #expect(try await ids(program, "--state", "held") == drafts)
        let removed = try await program.succeed("add", "studio", "a", "--draft").lines[0]
        try await program.succeed("remove", removed)
        #expect(try await ids(program, "--state", "draft") == [])
    }

    /// Relative paths in arguments refer to the working directory of the command, even if an app gave the queue a base folder.
    @Test func ignoresBaseFolderOfQueue() async throws {
        let program = try await program()
        let base = program.folder.path.appending("base")
        try FileManager.default.createDirectory(atPath: base.string, withIntermediateDirectories: true)
        let queue = try await TransferQueue(storage: .folder(program.store, base: base), transports: [])
        await queue.shutdown()
        let id = try await program.succeed("add", "studio", "a").lines[0]
        let items = try #require(try await program.succeed("show", id, "--json").objects().first?["items"] as? [[String: Any]])
        #expect(items.map { $0["source"] as? String } == [program.folder.path.appending("a").string])
    }
}
