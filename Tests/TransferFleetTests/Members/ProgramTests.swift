import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferFleet
import TransferKit

/// The commands of `transferq` on a fleet.
@Suite(.timeLimit(.minutes(2))) struct ProgramTests {
    private static let transferq = FilePath(MemberFixture.program).removingLastComponent().appending("transferq").string

    private func run(_ url: String, _ arguments: String...) async throws -> (status: Int32, lines: [String]) {
        let result = try await BlockingIO.run {
            try StartedProgram.run("sh", ["-c", "exec \"$0\" \"$@\" 2>&1", Self.transferq, "--fleet", url] + arguments)
        }
        return (result.status, String(decoding: result.output, as: UTF8.self).split(separator: "\n").map(String.init))
    }

    @Test func `commands create, fill and control a fleet`() async throws {
        let server = try PostgresServer.shared.get()
        let url = server.url(try await server.createDatabase())
        let missing = try await run(url, "list")
        let sentence = "transferq: The database has no fleet. Create it with: transferq --fleet URL fleet init"
        #expect(missing.status == 3 && missing.lines.first?.hasPrefix(sentence) == true, "\(missing)")
        #expect(try await run(url, "fleet", "init").lines == ["Created the fleet."])
        #expect(try await run(url, "fleet", "init").lines == ["The fleet has the current version."])
        #expect(try await run(url, "account", "add", "studio", "tus+http://127.0.0.1:9/files/").status == 0)
        let file = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)")
        try Data("content".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var ids: [String] = []
        for name in ["one", "two", "three"] {
            let added = try await run(url, "--place", "label:fast", "upload", "studio", file.path, "--name", name)
            try #require(added.status == 0 && added.lines.count == 1, "\(added)")
            ids.append(added.lines[0])
        }
        #expect(try await run(url, "now", ids[2]).status == 0)
        #expect(try await run(url, "hold", ids[1]).status == 0)
        #expect(try await run(url, "move", ids[1], "0").status == 0)
        let fleet = try Fleet(url, place: .anywhere)
        #expect(try await fleet.sessionIDs().map { "\($0)" } == [ids[1], ids[0], ids[2]])
        let list = try await run(url, "list")
        #expect(list.status == 0 && list.lines.count == 4, "\(list)")
        let why = try await run(url, "why", ids[0])
        #expect(why.lines.joined().contains("members with the label \"fast\""), "\(why)")
        #expect(try await run(url, "resume", ids[0]).status == 4)
        #expect(try await run(url, "show", ids[0]).lines.contains { $0.contains("one") })
        #expect(try await run(url, "queue", "stop").status == 0)
        #expect(try await fleet.status().mode == .stopped)
        #expect(try await run(url, "fleet", "status").lines.first == "Mode:     stopped")
        #expect(try await run(url, "fleet", "members").lines.isEmpty)
        #expect(try await run(url, "fleet", "evict", "x").status != 0)
        #expect(try await run(url, "remove", "--yes", ids[0], ids[1], ids[2]).status == 0)
        #expect(try await fleet.sessionIDs().isEmpty)
        let unsupported = try await run(url, "run")
        #expect(
            unsupported.status == 2
                && unsupported.lines == [
                    "transferq: This command needs a queue in a storage folder. It can't be used with --fleet."
                ])
    }

    /// Tools that generate manual pages and the documentation site read the help without a fleet.
    @Test(arguments: [
        (["--help"], "USAGE: transferq-fleet <subcommand>"), (["fleet", "--help"], "USAGE: transferq-fleet fleet <action>"),
        (["agent", "run", "--help"], "USAGE: transferq-fleet agent run"),
        (["--experimental-dump-help"], "\"commandName\" : \"transferq-fleet\""),
    ]) func `help needs no fleet`(arguments: [String], text: String) async throws {
        let result = try await BlockingIO.run { try StartedProgram.run(MemberFixture.program, arguments) }
        #expect(result.status == 0 && String(decoding: result.output, as: UTF8.self).contains(text), "\(result)")
    }

    @Test func `wrong options have a message`() async throws {
        let server = try PostgresServer.shared.get()
        let wrong = try await run("mysql://x", "list")
        #expect(wrong.status == 2 && wrong.lines[0].contains("must begin with postgresql://"), "\(wrong)")
        let place = try await run(server.url("postgres"), "--place", "moon", "list")
        #expect(place.status == 2 && place.lines[0].contains("--place must be"), "\(place)")
        #expect(try await run(server.url("postgres"), "agent", "run", "--slots", "0").status == 2)
        #expect(try await run(server.url("postgres"), "fleet", "evict").status == 2)
    }
}
