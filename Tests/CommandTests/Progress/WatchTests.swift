import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferKit

@Suite struct WatchTests {
    @Test func printsEventsOfAllProcesses() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for name: String in ["a", "b"] { try program.folder.file(name, size: 100) }
            let ids = try await program.succeed("add", "studio", "a", "b", "--each").lines
            try await program.succeed("move", ids[1], "0")
            let middle = try #require(try await program.succeed("queue", "status", "--json").objects().first?["revision"] as? Int)
            let run = try await program.succeed("run", "--progress", "json").objects().filter { $0["event"] as? String != "progress" }
            try await program.succeed("remove", ids[0])

            let log = try await program.succeed("watch", "--json")
            let events = try log.objects()
            #expect(events.allSatisfy { SessionSchema.event.isSubset(of: $0.keys) })
            #expect(events.compactMap { $0["revision"] as? Int } == Array(1...events.count))
            let added = try #require(events.first { $0["event"] as? String == "added" })
            #expect(added["ids"] as? [String] == ids && added["index"] as? Int == 0)
            let moved = try #require(events.first { $0["event"] as? String == "moved" })
            #expect(moved["id"] as? String == ids[1] && moved["from"] as? Int == 1 && moved["to"] as? Int == 0)
            // The log contains the events that the run printed, with the same indices.
            let summary = { (event: [String: Any]) in
                "\(event["revision"] as? Int ?? -1) \(event["event"] as? String ?? "") \(event["id"] as? String ?? "") \(event["index"] as? Int ?? -1)"
            }
            #expect(events.map(summary).contains(run.map(summary)))

            let later = try await program.succeed("watch", "--json", "--since", "\(middle)").objects()
            #expect(later.compactMap { $0["revision"] as? Int } == Array((middle + 1)...events.count))
            #expect(try await program.succeed("watch", "--since", "\(events.count)").output == "")
            #expect(try await program.succeed("watch", "--since", "now").output == "")
            for tail in [0, 3, 100_000] {
                let last = try await program.succeed("watch", "--json", "--tail", "\(tail)").objects()
                #expect(last.map { $0["revision"] as? Int } == events.suffix(tail).map { $0["revision"] as? Int })
            }
            #expect(try await program.run("watch", "--since", "now", "--tail", "3").status == 2)
            // A client's revision can exceed the log's last revision only if the database was restored from a backup.
            for since in [events.count + 1, events.count + 10, Int.max] {
                let gap = try await program.succeed("watch", "--json", "--since", "\(since)").objects()
                #expect(gap.compactMap { $0["event"] as? String } == ["gap"])
                #expect(gap.first?["from"] as? Int == events.count + 1 && gap.first?["to"] as? Int == since)
            }
            let text = try await program.succeed("watch")
            #expect(text.lines.contains { $0.contains("completed  \(ids[1].prefix(8)) b") })
            #expect(text.lines.contains { $0.contains("moved      \(ids[1].prefix(8)) b from index 1 to 0") })
            #expect(text.lines.contains { $0.contains("added      2 sessions at index 0") })
            // `--tail` counts only printed events, so it ignores the steps of a run.
            for tail in [0, 1, 3] { #expect(try await program.succeed("watch", "--tail", "\(tail)").lines == text.lines.suffix(tail)) }
            let filtered = try await program.succeed("watch", "--json", "--event", "completed", "--tail", "1").objects()
            #expect(filtered.map { $0["id"] as? String } == [ids[0]])
            // Without --verbose, the text omits the steps of a run, such as `willActivate`.
            #expect(!text.output.contains("Activate") && !text.output.contains("Running"), "\(text.output)")
            let verbose = try await program.succeed("watch", "--verbose")
            #expect(verbose.lines.count == events.count && verbose.output.contains("willActivate"))
        }
    }

    /// On a terminal, the first word of an important line has a colour, and the lines fit into the width without losing text.
    @Test(arguments: [60, 400] as [UInt16], [true, false]) func formatsLinesForTerminal(columns: UInt16, hasColor: Bool) async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": hasColor ? "" : "1"]
            let path = try program.folder.file("large", size: 6)
            let id = try await program.succeed("add", "studio", "large", "--name", "two words").lines[0]
            #expect(try await program.run("run", "--progress", "none").status == 1)
            let terminal = try PseudoTerminal(columns: columns)
            #expect(try await program.start(["watch"], output: terminal.terminal).result().status == 0)
            let drawn = try await terminal.finish()
            let plain = drawn.replacing(/\u{1B}\[[0-9;]*m/, with: "")
            #expect((plain != drawn) == hasColor && drawn.contains("\u{1B}[31mfailed\u{1B}[0m     \(id.prefix(8))") == hasColor, "\(drawn)")
            // The path is a single word, so the path is not broken.
            let long = path.string.count
            let lines = plain.split(whereSeparator: \.isNewline)
            #expect(lines.allSatisfy { $0.count <= Int(columns) || $0.count <= long + 3 }, "\(plain)")
            #expect(lines.contains { $0.hasPrefix("  ") } == (columns == 60), "\(plain)")
            let words = { (text: String) in text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
            #expect(words(plain) == words(try await program.succeed("watch").output))
        }
    }

    /// `watch` follows one owner after another, and also prints the events that occur while no process owns the queue.
    @Test func followsAllOwners() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let watch = try program.start(["watch", "--follow", "--json"])
            var lines = watch.lines.makeAsyncIterator()
            var revisions: [Int] = []
            for name: String in ["a", "b"] {
                try program.folder.file(name, size: 100)
                let id = try await program.succeed("add", "studio", name).lines[0]
                try await program.succeed("run")
                while let line = await lines.next() {
                    let event = try CommandResult.object(line)
                    if event["event"] as? String != "progress" { revisions.append(try #require(event["revision"] as? Int)) }
                    if event["event"] as? String == "completed", event["id"] as? String == id { break }
                }
            }
            #expect(revisions == Array(1...revisions.count), "each event is printed once")
            watch.send(SIGTERM)
            _ = await watch.result()
        }
    }

    @Test func reportsOwnerWithoutSocket() async throws {
        let program = try TransferQ()
        let queue = try await TransferQueue(storage: .folder(program.store), transports: [])
        let result = try await program.run("watch")
        await queue.shutdown()
        #expect(result.status == 3)
        #expect(result.diagnostics.contains("process \(ProcessInfo.processInfo.processIdentifier)"))
    }
}
