import Foundation
import TUSLoopback
import Testing

@Suite(.serialized) struct OrderTests {
    private func add(_ names: [String], to studio: LoopbackStudio) async throws -> [String: String] {
        for name in names { try studio.program.folder.file(name, size: 100, seed: UInt64(name.utf8.first ?? 0)) }
        let ids = try await studio.program.run(["add", "studio"] + names + ["--each"]).lines
        return Dictionary(uniqueKeysWithValues: zip(names, ids))
    }

    @Test func reordersSessions() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let ids = try await add(["a", "b", "c", "d", "e"], to: studio)
            let id = { (name: String) in try #require(ids[name]) }
            #expect(try await program.succeed("move", id("e"), "0").lines == [id("e")])
            try await program.succeed("next", id("c"))
            try await program.succeed("now", id("b"))
            #expect(try await program.succeed("hold", id("d"), "--json").objects().map { $0["id"] as? String } == [id("d")])
            try await program.succeed("cancel", id("a"))
            let listed = try await program.succeed("list", "--json").objects()
            #expect(listed.map { $0["id"] as? String } == (try ["e", "a", "b", "c", "d"].map(id)))
            #expect(listed.map { $0["state"] as? String } == ["waiting", "cancelled", "waiting", "waiting", "held"])
            #expect(studio.arrivals == [], "only `transferq run` starts transfers")
            try await program.succeed("run", "--progress", "none")
            #expect(studio.arrivals == ["b", "c", "e"])

            try await program.succeed("release", "--all")
            try await program.succeed("retry", "--account", "studio")
            try await program.succeed("run", "--progress", "none")
            #expect(studio.arrivals == ["b", "c", "e", "a", "d"])
            for name in ids.keys { #expect(try studio.hasArrived(name)) }
        }
    }

    @Test func placesNewSessions() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for name: String in ["a", "b", "c", "d", "e", "f"] { try program.folder.file(name, size: 10) }
            try await program.succeed("add", "studio", "a", "--tag", "first")
            let held = try await program.succeed("add", "studio", "b", "--at", "0", "--hold").lines[0]
            try await program.succeed("add", "studio", "c", "--at", "1")
            try await program.succeed("add", "studio", "d", "--next")
            let now = try await program.succeed("add", "studio", "e", "--now").lines[0]
            try await program.succeed("add", "studio", "f", "--at", "0", "--after", now)
            #expect(try await program.run("add", "studio", "a", "--at", "7").status == 4)
            #expect(try await program.run("add", "studio", "a", "--after", "ffff").status == 4)
            let names = try await program.succeed("list", "--json").objects().map { $0["name"] as? String }
            #expect(names == ["f", "b", "c", "a", "d", "e"])
            #expect(studio.arrivals == [], "only `transferq run` starts transfers")
            try await program.succeed("run", "--progress", "none")
            #expect(studio.arrivals == ["e", "d", "f", "c", "a"])
            #expect(try await studio.session(held)["state"] as? String == "held")
        }
    }

    @Test func movesSeveralSessions() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let ids = try await add(["a", "b", "c", "d"], to: studio)
            try await program.succeed("move", try #require(ids["d"]), try #require(ids["c"]), "0")
            try await program.succeed("run", "--progress", "none")
            // The moved sessions stay in queue order. The order of the arguments does not matter.
            #expect(studio.arrivals == ["c", "d", "a", "b"])
        }
    }

    @Test func keepsLimitsBetweenRuns() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("large", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "large", "--rate", "64K").lines[0]
            // At this rate, the file takes a quarter of an hour. Without a limit, it would complete before the third progress report.
            for limit in [[], ["queue"], ["account"]] as [[String]] {
                switch limit.first {
                case "queue":
                    try await program.succeed("set", id, "--rate", "0")
                    try await program.succeed("queue", "set", "--rate", "64K")
                case "account":
                    try await program.succeed("queue", "set", "--rate", "0")
                    try await program.succeed("account", "edit", "studio", "--rate", "64K")
                default: break
                }
                let run = try program.start(["run", "--progress", "json"])
                var reports = 0
                for await line in run.lines {
                    let event = try CommandResult.object(line)
                    if event["event"] as? String == "progress", (event["bytesSent"] as? Int ?? 0) > 0 { reports += 1 }
                    if reports == 3 { break }
                }
                run.send(SIGINT)
                #expect(await run.result().status == 130, "\(limit)")
                #expect(studio.server.statistics.bytesStored < 32 << 20)
            }
            try await program.succeed("account", "edit", "studio", "--rate", "0")
            try await program.succeed("run", "--progress", "none")
            #expect(try studio.hasArrived("large"))
        }
    }
}

extension LoopbackStudio {
    /// The names of the files in the order of their first requests.
    var arrivals: [String] { server.statistics.uploads.compactMap(\.filename) }
}
