import Foundation
import TUSLoopback
import Testing
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized) struct QueueCommandTests {
    @Test func showsStatusAndSetsLimits() async throws {
        let program = try TransferQ()
        let initial = try #require(try await program.succeed("queue", "status", "--json").objects().first)
        #expect(Set(initial.keys) == SessionSchema.queue)
        #expect(initial["mode"] as? String == "stopped" && initial["sessions"] as? Int == 0)
        #expect(initial["rateLimit"] is NSNull && initial["maxSessions"] as? Int == 1 && initial["nextDue"] is NSNull)
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 7)
        try await program.succeed("add", "studio", "a")
        try await program.succeed("add", "studio", "a", "--hold")
        let set = try await program.succeed("queue", "set", "--max-sessions", "3", "--rate", "1.5M", "--json").objects().first
        #expect(set?["maxSessions"] as? Int == 3 && set?["rateLimit"] as? Int == 1_572_864)
        let status = try #require(try await program.succeed("queue", "status", "--json").objects().first)
        #expect(
            status["remaining"] as? Int == 1 && status["waiting"] as? Int == 1 && status["held"] as? Int == 1
                && status["sessions"] as? Int == 2)
        #expect(status["bytesTotal"] as? Int == 14 && status["maxSessions"] as? Int == 3 && status["rateLimit"] as? Int == 1_572_864)
        let text = try await program.succeed("queue", "status").output
        #expect(text.contains("2: 1 waiting, 1 held") && text.contains("Remaining: 1 session\n") && text.contains("1.50 MiB/s"))
        #expect(text.contains("Limit:     3 concurrent sessions"))
        try await program.succeed("queue", "set", "--rate", "0")
        #expect(try await program.succeed("queue", "status", "--json").objects().first?["rateLimit"] is NSNull)
    }

    /// The fraction of the current second does not change the shown time.
    @Test func showsDueTimeExactly() async throws {
        var program = try TransferQ()
        program.environment["TZ"] = "UTC"
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 7)
        try await program.succeed("upload", "studio", "a", "--not-before", "2040-01-02T22:00:00Z")
        for _ in 0..<12 {
            let status = try await program.succeed("queue", "status")
            #expect(status.lines.contains("Next due:  2040-01-02T22:00:00Z"), "\(status.output)")
        }
    }

    @Test func setsRetention() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 10) }
            let ids = try await program.succeed("upload", "studio", "a", "b", "c", "--each").lines
            try await program.succeed("run", "--progress", "none")
            func listed() async throws -> [String?] { try await program.succeed("list", "--json").objects().map { $0["id"] as? String } }
            #expect(try await listed() == ids)
            let week = try #require(try await program.succeed("queue", "set", "--keep-completed", "7d", "--json").objects().first)
            #expect(week["keepCompletedSeconds"] as? Int == 604_800 && week["keepCompletedCount"] is NSNull)
            #expect(try await program.succeed("queue", "status").output.contains("Completed: kept for 7d"))
            #expect(try await listed() == ids)

            let run = try RunningQueue(program, "--forever")
            try await run.event("queueStarted")
            try await program.succeed("queue", "set", "--keep-completed", "1")
            #expect(try await listed() == [ids[2]])
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)

            try await program.succeed("upload", "studio", "a")
            try await program.succeed("run", "--progress", "none")
            #expect(try await listed().count == 1)
            try await program.succeed("queue", "set", "--keep-completed", "forever")
            try await program.succeed("upload", "studio", "b")
            try await program.succeed("run", "--progress", "none")
            #expect(try await listed().count == 2)
            #expect(try await program.succeed("queue", "status").output.contains("Completed: kept forever"))
        }
    }

    @Test(arguments: [
        ("0", "not kept"), ("0d", "not kept"), ("2", "only the last 2 sessions kept"), ("90m", "kept for 90m"), ("48h", "kept for 2d"),
    ])
    func showsRetention(argument: String, text: String) async throws {
        let program = try TransferQ()
        try await program.succeed("queue", "set", "--keep-completed", argument)
        #expect(try await program.succeed("queue", "status").output.contains("Completed: \(text)\n"))
    }

    @Test func setsMinimumOfFreeSpace() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 10)
            try await program.succeed("upload", "studio", "a")
            let initial = try await program.succeed("queue", "status", "--json").objects().first
            #expect(initial?["minFree"] as? Int == 64 << 20)
            try await program.succeed("queue", "set", "--min-free", "900T")
            #expect(try await program.succeed("queue", "status").output.contains("Min free:  900 TiB"))
            let doctor = try await program.run("doctor", "--json")
            let disk = try #require(try doctor.objects().first { $0["check"] as? String == "disk" })
            #expect(doctor.status == 1 && disk["state"] as? String == "wrong" && disk["floor"] as? Int == 900 << 40)
            let detail = try #require(disk["detail"] as? String)
            #expect(detail.contains("below 900 TiB") && detail.hasSuffix("queue set --min-free SIZE"), "\(detail)")
            let full = try await program.run("run", "--progress", "none")
            let advice = "no session starts below 900 TiB. Free some space. To lower the minimum: transferq queue set --min-free SIZE"
            #expect(full.status == 1 && full.diagnostics.contains(advice), "\(full.testDescription)")
            #expect(full.diagnostics.contains(#/The disk of the storage folder has [\d.]+ [KMGT]iB left/#), "\(full.testDescription)")
            let withDisplay = try await program.run("run")
            #expect(withDisplay.diagnostics.contains(advice), "\(withDisplay.testDescription)")
            // The option changes the minimum only for this run.
            try await program.succeed("run", "--progress", "none", "--min-free", "1K")
            #expect(try studio.hasArrived("a"))
            #expect(try await program.succeed("queue", "status", "--json").objects().first?["minFree"] as? Int == 900 << 40)
        }
    }

    @Test(arguments: [
        [], ["--max-sessions", "0"], ["--rate", "x"], ["--keep-completed", "7w"], ["--keep-completed", ""], ["--min-free", "x"],
        ["--max-sessions", "2", "--keep-completed", "40000d"],
    ])
    func rejectsInvalidLimits(options: [String]) async throws {
        let program = try TransferQ()
        #expect(try await program.run(["queue", "set"] + options).status == 2)
        #expect(try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int == 1)
    }

    @Test func namesNearestOption() async throws {
        let result = try await TransferQ().run("queue", "set", "--max-sesions", "2")
        #expect(result.status == 2 && result.diagnostics.contains("--max-sessions"), "\(result.testDescription)")
        #expect(!result.diagnostics.contains("nothing to set"))
    }

    @Test(arguments: ["start", "stop", "drain"])
    func rejectsModeChangeWithoutOwner(command: String) async throws {
        let program = try TransferQ()
        let alone = try await program.run("queue", command)
        #expect(alone.status == 4)
        #expect(alone.diagnostics.contains("transferq run") && alone.output == "")
    }

    @Test func overridesLimitForOneRun() async throws {
        // The server is slow enough that the second session starts long before the first completes.
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            let program = studio.program
            try await program.succeed("queue", "set", "--max-sessions", "1")
            for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 1 << 20) }
            let ids = try await program.succeed("add", "studio", "a", "b", "c", "--each").lines
            let events = try await program.succeed("run", "--max-sessions", "2", "--progress", "json").objects()
            let transitions = events.filter { ["didActivate", "completed"].contains($0["event"] as? String) }
            #expect(transitions.prefix(2).map { $0["event"] as? String } == ["didActivate", "didActivate"])
            #expect(transitions.prefix(2).map { $0["id"] as? String } == Array(ids.prefix(2)))
            #expect(transitions.dropFirst(2).first?["event"] as? String == "completed")
            #expect(try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int == 1)
        }
    }

    /// `--jobs` is the former name of `--max-sessions`.
    @Test func acceptsFormerNameOfLimit() async throws {
        let program = try TransferQ()
        for command in [["run"], ["agent", "start"], ["agent", "run"]] {
            #expect(try await !program.run(command + ["--help"]).output.contains("--jobs"))
            let refused = try await program.run(command + ["--jobs", "0"])
            #expect(refused.status == 2 && refused.diagnostics.contains("--jobs must be at least 1"), "\(refused.testDescription)")
            #expect(try await program.run(command + ["--jobs", "2", "--max-sessions", "2"]).status == 2)
        }
        func limit() async throws -> Int? {
            try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int
        }
        let run = try RunningQueue(program, "--forever", "--jobs", "4")
        try await run.event("queueStarted")
        #expect(try await limit() == 4)
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
        try await program.succeed("agent", "start", "--jobs", "3")
        #expect(try await limit() == 3)
        try await program.succeed("agent", "stop")
    }

    @Test func appliesStoredLimitToCurrentAndLaterRuns() async throws {
        let program = try TransferQ()
        let run = try RunningQueue(program, "--forever", "--max-sessions", "4")
        try await run.event("queueStarted")
        #expect(try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int == 4)
        try await program.succeed("queue", "set", "--max-sessions", "2")
        #expect(try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int == 2)
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
        #expect(try await program.succeed("queue", "status", "--json").objects().first?["maxSessions"] as? Int == 2)
    }

    @Test func keepsRunningWithOptionForever() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 100)
            try await program.succeed("add", "studio", "a")
            let run = try program.start(["run", "--forever", "--json"])
            for await line in run.lines where try CommandResult.object(line)["event"] as? String == "queueBecameIdle" { break }
            #if os(Linux)
                // Checks the setting that excludes registers from crash reports. Only root may read the environment of a process that is
                // not dumpable (prctl(2)).
                if geteuid() == 0 {
                    let variables = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(run.processID)/environ")).split(separator: 0)
                    #expect(variables.contains(Data("SWIFT_BACKTRACE=registers=none".utf8)))
                }
            #endif
            run.send(SIGTERM)
            let result = await run.result()
            #expect(result.status == 130)
            #expect(try result.objects().last?["event"] as? String == "queueStopped")
            #expect(try studio.hasArrived("a"))
        }
    }
}
