import Foundation
import ScriptedHTTP
import TUSLoopback
import Testing
import TransferCommands
import TransferKit

@Suite(.serialized) struct OperationTests {
    private static let operations = ["now", "next", "pause", "resume", "hold", "release", "yield", "cancel", "retry", "remove"]

    private func program(_ count: Int = 1) async throws -> (TransferQ, ids: [String]) {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let added = try await program.run(["add", "studio"] + Array(repeating: "a", count: count) + ["--each"])
        return (program, added.lines)
    }

    @Test(arguments: operations + ["set", "move", "stop"])
    func rejectsUnknownSession(operation: String) async throws {
        let (program, ids) = try await program()
        let rest = operation == "set" ? ["--rate", "1M"] : operation == "move" ? ["0"] : []
        let result = try await program.run([operation, ids[0], "ffffffff"] + rest)
        #expect(result.status == 4)
        #expect(result.output == "" && result.diagnostics.contains("ffffffff"))
        // The session that exists is not changed.
        #expect(try await program.succeed("list", "--json").objects().map { $0["state"] as? String } == ["waiting"])
        #expect(try await program.run([operation] + rest).status == 2)
        #expect(try await program.run([operation, "--account", "nobody"] + rest).status == 4)
    }

    @Test(arguments: ["resume", "release", "retry"])
    func rejectsOperationInWrongState(operation: String) async throws {
        let (program, ids) = try await program(2)
        let result = try await program.run(operation, ids[0])
        #expect(result.status == 4)
        #expect(result.diagnostics.contains("is waiting") && result.output == "")
        // With --all, the command skips sessions in other states.
        let group = try await program.run(operation, "--all", "--json")
        #expect(group.status == 0 && group.output == "")
    }

    @Test func changesOnlySessionsInRequiredState() async throws {
        let (program, ids) = try await program(3)
        try await program.succeed("hold", ids[1])
        let result = try await program.run(["release"] + ids)
        #expect(result.status == 4)
        #expect(result.lines == [ids[1]])
        #expect(result.diagnostics.contains(ids[0]) && result.diagnostics.contains(ids[2]))
    }

    @Test func pauseHoldsWaitingSession() async throws {
        let (program, ids) = try await program()
        try await program.succeed("pause", ids[0])
        #expect(try await program.succeed("list", "--json").objects().first?["state"] as? String == "held")
        #expect(try await program.succeed("why", ids[0]).output.contains("transferq release"))
    }

    /// A waiting session has no run to interrupt.
    @Test func yieldReportsNoWaitingSessions() async throws {
        let (program, ids) = try await program(2)
        for words in [[ids[0]], ["--all"], ids] {
            let result = try await program.succeed(["yield"] + words)
            #expect(result.output == "" && result.diagnostics.hasPrefix("No session matches, or none is in"), "\(result.testDescription)")
        }
    }

    /// The session's own reason comes first. Then follow a note that the queue is not running, and the command that runs it.
    @Test func explainsWaitingWithoutOwner() async throws {
        var (program, ids) = try await program(3)
        // Dates are in the time zone of this machine.
        program.environment = ["TZ": "Asia/Kolkata"]
        try await program.succeed("set", ids[0], "--not-before", "2040-01-02T03:04:05Z")
        try await program.succeed("set", ids[1], "--after", ids[2])
        let (early, dependent) = (try await program.succeed("why", ids[0]).output, try await program.succeed("why", ids[1]).output)
        #expect(early.hasPrefix("The earliest start is 2040-01-02T08:34:05+0530. The queue is not running. To run it: transferq run"))
        #expect(dependent.hasPrefix("The session waits for session \(ids[2]), which is waiting. The queue is not running."))
        #expect(try await program.succeed("why", ids[2]).output.hasPrefix("The queue is not running. To run it"))
        let list = try await program.succeed("list").output
        #expect(list.contains("starts at 2040-01-02T08:34:05+0530") && list.contains("after \(ids[2].prefix(8)) (waiting)"), "\(list)")
    }

    @Test func explainsRetry() async throws {
        let server = try ScriptedServer { _, _ in [.answer(503, ["Retry-After": "3600"])] }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        try program.folder.file("a", size: 1)
        let id = try await program.succeed("add", "bucket", "a").lines[0]
        let queue = try RunningQueue(program, "--forever")
        try await queue.event("didDeactivate", of: id)
        let why = try await program.succeed("why", id).output
        queue.command.send(SIGTERM)
        _ = await queue.command.result()
        #expect(why.hasPrefix("The last attempt failed: The server ") && why.contains("is currently unavailable. "), "\(why)")
        #expect(why.contains(/The next one is due in \d+ s\./), "\(why)")
        #expect(why.ranges(of: "attempt failed").count == 1, "\(why)")
    }

    @Test(arguments: [["-1"], ["9"], ["x"], []])
    func rejectsInvalidIndices(index: [String]) async throws {
        let (program, ids) = try await program(2)
        let result = try await program.run(["move", ids[0]] + index)
        #expect(result.status == (index == ["9"] ? 4 : 2))
        #expect(try await program.succeed("list", "--json").objects().map { $0["id"] as? String } == ids)
    }

    @Test func replacesTags() async throws {
        let (program, ids) = try await program(3)
        try await program.succeed("set", ids[0], ids[2], "--set-tag", "x", "--set-tag", "y")
        #expect(try await program.succeed("list", "--json").objects().map { $0["tags"] as? [String] } == [["x", "y"], [], ["x", "y"]])
        #expect(try await program.succeed("remove", "--tag", "y").lines == [ids[0], ids[2]])
        #expect(try await program.run("set", ids[1]).status == 2)
        #expect(try await program.run("set", ids[1], "--rate", "x").status == 2)
        try await program.succeed("cancel", ids[1])
        try await program.succeed("set", ids[1], "--set-tag", "z")
        #expect(try await program.succeed("list", "--tag", "z", "--json").objects().map { $0["id"] as? String } == [ids[1]])
    }

    @Test func setSelectsByTag() async throws {
        let (program, ids) = try await program(3)
        try await program.succeed("set", ids[1], "--set-tag", "x")
        #expect(try await program.succeed("set", "--tag", "x", "--set-tag", "y", "--name", "new").lines == [ids[1]])
        #expect(try await program.succeed("list", "--tag", "y", "--json").objects().map { $0["name"] as? String } == ["new"])
        let refused = try await program.run("set", ids[0], "--tag", "y")
        #expect(refused.status == 2 && refused.diagnostics.contains("--set-tag"), "\(refused.testDescription)")
    }

    @Test func setChangesFailedSessions() async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            let program = studio.program
            try program.folder.file("large", size: 6)
            try program.folder.file("small", size: 5)
            let ids = try await program.succeed("add", "studio", "large", "small", "large", "--each").lines
            #expect(try await program.run("run", "--progress", "none").status == 1)
            #expect(try await program.succeed("set", "--failed", "--name", "again").lines == [ids[0], ids[2]])
            #expect(try await program.succeed("list", "--failed", "--json").objects().map { $0["name"] as? String } == ["again", "again"])
            #expect(try await studio.session(ids[1])["name"] as? String == "small")
        }
    }

    @Test func setClearsProperties() async throws {
        let (program, ids) = try await program(2)
        let words = [
            "--set-tag", "x", "--context", "[1]", "--after", ids[1], "--not-before", "+1h", "--chunk", "5M", "--parallel", "3",
            "--deadline", "60",
            "--give-up-after", "90", "--creation-url", "https://one.example/x/",
        ]
        func options() async throws -> [String: Any] {
            let queue = try await TransferQueue(
                storage: .folder(program.store), transports: RegisteredTransports.builtIn.all.map(\.transport))
            let record = try #require(try await queue.store.sessions([1]).first)
            let data = try JSONEncoder().encode(record.options)
            await queue.shutdown()
            return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        }
        let before = try await options()
        try await program.succeed(["set", ids[0]] + words)
        let changed = try await options()
        for key in ["chunkSize", "filesInFlight", "deadline", "creationURL"] { #expect(changed[key] != nil, "\(key)") }
        #expect(try await program.run("remove", ids[1]).status == 4, "another session depends on this session")
        let all = ["tags", "context", "after", "not-before", "chunk", "parallel", "deadline", "give-up-after", "creation-url"]
        try await program.succeed(["set", ids[0]] + all.flatMap { ["--clear", $0] })
        #expect(NSDictionary(dictionary: try await options()) == NSDictionary(dictionary: before))
        let session = try #require(try await program.succeed("show", ids[0], "--json").objects().first)
        #expect(session["tags"] as? [String] == [] && session["context"] is NSNull && session["why"] as? String != nil)
        try await program.succeed("remove", ids[1])
        let both = try await program.run("set", ids[0], "--chunk", "1M", "--clear", "chunk")
        #expect(both.status == 2 && both.diagnostics.contains("--chunk and --clear chunk"), "\(both.testDescription)")
        #expect(try await program.run("set", ids[0], "--clear", "name").status == 2)
        // `--clear-tags` is another name for `--clear tags`.
        try await program.succeed("set", ids[0], "--set-tag", "x")
        try await program.succeed("set", ids[0], "--clear-tags")
        #expect(try await program.succeed("list", "--tag", "x").output == "")
    }

    @Test func resumeReleasesHeldSession() async throws {
        let (program, ids) = try await program(2)
        try await program.succeed("hold", "--all")
        #expect(try await program.succeed("resume", ids[1]).lines == [ids[1]])
        #expect(try await program.succeed("list", "--json").objects().map { $0["state"] as? String } == ["held", "waiting"])
        #expect(try await program.succeed("resume", "--all").lines == [ids[0]])
    }

    @Test func setsAccountNameStartAndOptions() async throws {
        let (program, ids) = try await program(3)
        try await program.succeed("account", "add", "archive", "http://127.0.0.1:9/files/")
        let changes = ["--to-account", "archive", "--name", "Day one", "--after", ids[1], "--metadata", "a=b", "--parallel", "2"]
        #expect(try await program.succeed(["update", ids[0]] + changes).lines == [ids[0]])
        func shown() async throws -> [String: Any] { try #require(try await program.succeed("show", ids[0], "--json").objects().first) }
        #expect(try await shown()["account"] as? String == "archive")
        #expect(try await shown()["name"] as? String == "Day one")
        let cycle = try await program.run("set", ids[1], "--after", ids[0])
        #expect(cycle.status == 4 && cycle.diagnostics.contains("wait for each other"), "\(cycle.diagnostics)")
        try await program.succeed("set", ids[0], "--after-none", "--not-before", "+1h")
        try await program.succeed("set", ids[1], "--after", ids[0])
        #expect(try await program.run("set", ids[2], "--to-account", "missing").status == 4)
        #expect(try await program.run("set", ids[2], "--overwrite", "x").status == 2)
        #expect(try await program.run("set", ids[2], "--after", ids[0], "--after-none").status == 2)
    }

    @Test func rejectsOperationsOnCompletedSession() async throws {
        try await LoopbackStudio.with { studio in
            try studio.program.folder.file("a", size: 1)
            let id = try await studio.program.succeed("add", "studio", "a").lines[0]
            try await studio.program.succeed("run", "--progress", "none")
            for operation in Self.operations where operation != "remove" {
                #expect(try await studio.program.run(operation, id).status == 4, "\(operation)")
            }
            #expect(try await studio.program.succeed("why", id).output == "The session is completed.\n")
        }
    }

    @Test(arguments: [[], ["--keep-partial"], ["--discard"]])
    func cancelKeepsUnfinishedUploadUnlessDiscarding(options: [String]) async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            let program = studio.program
            try program.folder.sparseFile("large", size: 120 << 20)
            try program.folder.file("small", size: 10)
            let id = try await program.succeed("add", "studio", "large").lines[0]
            try await program.runAndInterrupt()
            try await program.run(["cancel", id] + options).expectSuccess()
            try await program.succeed("add", "studio", "small")
            try await program.succeed("run", "--progress", "none")
            #expect(studio.server.storedFiles(named: "large").count == (options == ["--discard"] ? 0 : 1))
            #expect(try await studio.session(id)["state"] as? String == "cancelled")
        }
    }

    @Test func runEndsIfOnlySessionIsPaused() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("large", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "large", "--rate", "64K").lines[0]
            try await program.pauseRunningSession(id)

            let run = try await program.run("run")
            #expect(run.status == 1)
            #expect(run.diagnostics.contains("1 paused"))
            #expect(try await program.succeed("why", id, "--json").objects().first?["state"] as? String == "paused")
            try await program.succeed("resume", id)
            try await program.succeed("set", id, "--rate", "0")
            try await program.succeed("run", "--progress", "none")
            #expect(try studio.hasArrived("large"))
        }
    }
}

extension TransferQ {
    /// Starts `transferq run`, and interrupts the command after the first report of progress.
    func runAndInterrupt() async throws {
        let run = try start(["run", "--progress", "json"])
        for await line in run.lines {
            let event = try CommandResult.object(line)
            if event["event"] as? String == "progress", (event["bytesSent"] as? Int ?? 0) > 0 { break }
        }
        run.send(SIGINT)
        let status = await run.result().status
        try #require(status == 130)
    }

    /// Runs the queue in this process until a session runs, and pauses the session. The session stays paused when the queue has shut down.
    func pauseRunningSession(_ id: String) async throws {
        let queue = try await TransferQueue(storage: .folder(store), transports: RegisteredTransports.builtIn.all.map(\.transport))
        let session = try await queue.session(try #require(SessionID(id)))
        let events = queue.events
        try await queue.start()
        for await event in events {
            if case .didStartRunning(session.id) = event.kind { break }
        }
        #expect(try await queue.pause(session.id) == .paused)
        await queue.shutdown()
    }
}

extension CommandResult {
    func expectSuccess() throws {
        try #require(status == 0, "\(testDescription)")
    }
}
