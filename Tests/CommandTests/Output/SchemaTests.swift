import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// The schema of the JSON output. ``TransferQ`` validates the JSON output of all commands in all tests. These tests check that the schema
/// describes all commands, and rejects any other output.
@Suite(.serialized) struct SchemaTests {
    @Test func describesEveryCommand() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let url = studio.url.absoluteString
            for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 10) }
            var printed: Set<String> = []
            func check(_ words: String...) async throws {
                let result = try await program.run(words + ["--json"])
                try #require(result.status == 0 && !result.lines.isEmpty, "\(words): \(result.testDescription)")
                let command = try #require(TransferQ.command(in: words))
                printed.insert(command)
            }
            try await check("account", "add", "other", url, "--token-env", "TOKEN", "--header-env", "X-Key: KEY", "--header", "X-A: 1")
            try await check("account", "list")
            try await check("account", "show", "other")
            try await check("account", "edit", "other", "--max-sessions", "2", "--rate", "1M")
            try await check("account", "unblock", "other")
            try await check("account", "retry", "other")
            try await check("account", "check", "studio")
            try await check("account", "remove", "other")
            let ids = try await program.succeed("add", "studio", "a", "b", "c", "--each").lines
            try await check("add", "studio", "a", "--name", "x", "--tag", "y", "--context", "[1]", "--hold")
            try await check("upload", "studio", "a", "--hold")
            try await check("download", "studio", "x", "--draft")
            try await check("enqueue", try await program.succeed("add", "studio", "b", "--draft").lines[0])
            try await check("list")
            for word in ["show", "why", "now", "next", "hold", "release", "pause", "release", "cancel", "retry"] {
                try await check(word, ids[0])
            }
            try await check("move", ids[0], "1")
            try await check("set", ids[0], "--set-tag", "z")
            try await check("queue", "set", "--rate", "64M")
            try await check("queue", "status")
            try await check("doctor")
            try await leavePausedSession(studio)
            try await check("yield", "--all")
            try await program.succeed("pause", "--all")
            try await check("resume", "--all")
            try await check("run")
            try await check("stream", "studio", "x", "--command", "echo x", "--length", "2")
            try await check("show", ids[0])
            try await check("watch")
            try await program.changeDatabase("UPDATE session SET direction = 'sideways' WHERE key IN (1, 2)")
            // Unreadable sessions are quarantined when a command reads them.
            try await program.succeed("list")
            try await check("quarantine", "list")
            try await check("quarantine", "retry", "1")
            try await check("quarantine", "drop", "2")
            try await check("remove", "--all")
            try await check("agent", "unit")
            try await check("agent", "start")
            try await check("agent", "status")
            for word in ["stop", "start", "drain"] { try await check("queue", word) }
            try await check("agent", "stop")
            #expect(printed == Set(TransferQ.schema.commands.keys))
            // These two commands print no JSON.
            #expect(Set(HelpTests.commands).subtracting(printed) == ["agent run", "web"])
        }
    }

    @Test func describesEventsOfFailures() async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            let program = studio.program
            try program.folder.file("large", size: 6)
            try program.folder.file("small", size: 5)
            try await program.succeed("account", "add", "locked", studio.url.absoluteString, "--token-env", "NOT_SET_ANYWHERE")
            // No process listens on the discard port of this machine.
            try await program.succeed("account", "add", "nowhere", "http://127.0.0.1:9/")
            try await program.succeed("add", "studio", "large")
            try await program.succeed("add", "locked", "small")
            try await program.succeed("add", "nowhere", "small")
            let run = try await program.run("run", "--no-wait", "--json")
            #expect(run.status == 1)
            for command in [["list"], ["watch"], ["account", "list"]] { #expect(try await program.run(command + ["--json"]).status == 0) }
            let events = try run.objects().compactMap { $0["event"] as? String }
            for event in ["itemFailed", "failed", "accountBlocked", "needsCredentials", "attemptFailed"] {
                #expect(events.contains(event), "\(event)")
            }
        }
    }

    /// The schema rejects missing fields, additional fields and fields of other types.
    @Test func rejectsUndescribedOutput() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/", "--token-env", "TOKEN")
        try program.folder.file("a", size: 1)
        try await program.succeed("add", "studio", "a")
        let id = try await program.succeed("list", "--json").objects().first?["id"] as? String
        for (command, words) in [
            ("list", ["list"]), ("show", ["show", id ?? ""]), ("account list", ["account", "list"]), ("queue status", ["queue", "status"]),
            ("watch", ["watch"]),
        ] {
            let line = try #require(try await program.run(words + ["--json"]).lines.first)
            let object = try CommandResult.object(line)
            for (name, value) in object where name != "context" {
                for change in [["\(name)2": value], [name: [true]]] as [[String: Any]] {
                    var changed = object
                    changed[name] = nil
                    changed.merge(change) { $1 }
                    let text = String(decoding: try JSONSerialization.data(withJSONObject: changed), as: UTF8.self)
                    #expect(try TransferQ.schema.problems(of: text, from: command) != [], "\(command): \(text)")
                }
            }
        }
    }

    /// Adds a session and leaves it paused. Only a running session can be paused.
    private func leavePausedSession(_ studio: LoopbackStudio) async throws {
        try studio.program.folder.sparseFile("large", size: 64 << 20)
        let id = try await studio.program.succeed("add", "studio", "large", "--now", "--rate", "64K").lines[0]
        try await studio.program.pauseRunningSession(id)
        try await studio.program.succeed("set", id, "--rate", "0")
    }
}
