import Foundation
import ScriptedHTTP
import SystemPackage
import Testing

@Suite struct AdviceTests {
    @Test(arguments: [
        ("hold", "next", "transferq release"), ("hold", "retry", "transferq release"), ("cancel", "next", "transferq retry"),
        ("cancel", "resume", "transferq retry"), ("cancel", "release", "transferq retry"),
    ])
    func errorSuggestsCommandThatFitsState(before: String, operation: String, advice: String) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let ids = try await program.succeed("add", "studio", "a", "a", "--each").lines
        try await program.succeed(before, "--all")
        for selected in [[ids[0]], ids] {
            let refused = try await program.run([operation] + selected)
            #expect(refused.status == 4 && refused.output == "", "\(refused.testDescription)")
            // The suggested command ends its line, so that the user can copy it.
            for id in selected { #expect(refused.diagnostics.contains("\(advice) \(id.prefix(8))\n"), "\(refused.diagnostics)") }
        }
    }

    /// If no process runs the queue, a command after which a session could start prints how to run the queue.
    @Test func reportsThatNoProcessRunsQueue() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let draft = try await program.succeed("add", "studio", "a", "--draft").lines[0]
        let id = try await program.succeed("add", "studio", "a").lines[0]
        for (command, printsNote) in [
            (["enqueue", draft], true), (["hold", id], false), (["release", id], true), (["cancel", id], false), (["retry", id], true),
            (["now", id], true), (["next", id], true), (["set", id, "--name", "x"], false),
        ] {
            let result = try await program.succeed(command)
            #expect(result.diagnostics.contains("No process runs this queue.") == printsNote, "\(command) \(result.testDescription)")
        }
        #expect(try await program.succeed(["now", id, "-q"]).diagnostics == "")
    }

    @Test func reportsThatNoSessionMatches() async throws {
        let program = try TransferQ()
        for command in [
            ["set", "--tag", "nosuch", "--name", "x"], ["remove", "--all"], ["retry", "--failed"], ["cancel", "--all", "--dry-run"],
        ] {
            let result = try await program.succeed(command)
            #expect(result.output == "" && result.diagnostics.contains("No session matches"), "\(result.testDescription)")
        }
    }

    @Test(arguments: [
        (["download", "studio", "a", "--copy"], "--copy is for uploads"),
        (["download", "studio", "a", "--metadata=a=b"], "--metadata is for"),
        (["upload", "studio", "a", "--checksum", "sha256:00"], "--verify checksum"),
    ])
    func explainsOptionOfOtherDirection(arguments: [String], advice: String) async throws {
        let refused = try await TransferQ().run(arguments)
        #expect(refused.status == 2 && refused.diagnostics.contains(advice), "\(refused.testDescription)")
    }

    private static func server(respondingWith steps: [ServerStep]) throws -> ScriptedServer { try ScriptedServer { _, _ in steps } }

    @Test(arguments: ["now", "next", "retry", "resume", "release"]) func advisesAddingCompletedSessionAgain(operation: String) async throws
    {
        let server = try Self.server(respondingWith: [.answer(201)])
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "bucket", "a").lines[0]
        try await program.succeed("run", "--progress", "none")
        let refused = try await program.run(operation, id)
        #expect(refused.status == 4 && refused.diagnostics.contains("is completed"), "\(refused.testDescription)")
        #expect(refused.diagnostics.contains("transferq upload"), "\(refused.diagnostics)")
    }

    /// The response is shown on one line, without control characters, and truncated.
    @Test func showsServerResponse() async throws {
        let body = "stored\r\nas \u{1B}[31m7 " + String(repeating: "x", count: 2_000)
        let server = try Self.server(respondingWith: [.answer(201, ["Content-Type": "text/plain"], body: body)])
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        let file = try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "bucket", "a").lines[0]
        try await program.succeed("run", "--progress", "none")
        let shown = try await program.succeed("show", id)
        let line = try #require(shown.lines.first { $0.contains("the server responded") }, "\(shown.output)")
        #expect(line.hasPrefix("\(file): the server responded 201 (text/plain): stored as \u{FFFD}[31m7 xxx") && line.hasSuffix("x…"))
        #expect(line.count < 500 + file.string.count && !shown.output.contains("\u{1B}"))
    }

    @Test func namesFailedFileOnce() async throws {
        let server = try Self.server(respondingWith: [.answer(201)])
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        let file = try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "bucket", "a").lines[0]
        try FileManager.default.removeItem(atPath: file.string)
        #expect(try await program.run("run", "--progress", "none").status == 1)
        let shown = try await program.succeed("show", id)
        for line in shown.lines { #expect(line.ranges(of: file.string).count <= 1, "\(line)") }
        #expect(shown.output.contains(file.string))
    }
}
