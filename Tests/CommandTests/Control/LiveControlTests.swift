import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferControl
import TransferCore
import TransferKit

/// Commands on a queue that another process runs.
@Suite(.serialized) struct LiveControlTests {
    @Test func controlsSessionsWhileRunning() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            let small = "bcdefghij".map(String.init)
            for name in small { try program.folder.file(name, size: 1_000, seed: UInt64(name.utf8.first ?? 0)) }
            // At this rate, the first session takes a quarter of an hour.
            let first = try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0]
            let others = try await program.run(["add", "studio"] + small + ["--each"]).lines
            let ids = Dictionary(uniqueKeysWithValues: zip(["a"] + small, [first] + others))
            let id = { (name: String) in try #require(ids[name]) }
            // Without --forever, the run would end when all remaining sessions need user action.
            let run = try RunningQueue(program, "--forever")
            try await run.progress(of: first)

            try await program.succeed("move", id("j"), "1")
            try await program.succeed("hold", id("c"))
            #expect(try await program.succeed("cancel", id("d"), "--json").objects().first?["id"] as? String == id("d"))
            let order = try await program.succeed("list", "--json").objects().map { $0["name"] as? String }
            #expect(order == ["a", "j", "b", "c", "d", "e", "f", "g", "h", "i"])
            // Preempts the first session, which is interrupted and resumes later.
            try await program.succeed("now", id("g"))
            try await run.event("completed", of: id("g"))
            try await run.progress(of: first)
            // Paused: the session keeps its slot, so no other session starts.
            try await program.succeed("pause", first)
            #expect(try await studio.session(first)["state"] as? String == "paused")
            #expect(try await program.succeed("why", id("j")).output.contains("keeps one"))
            try await program.succeed("next", id("f"))
            // With a second slot, the other sessions run in the requested order.
            try await program.succeed("queue", "set", "--max-sessions", "2")
            try await run.event("completed", of: id("i"))
            // Removes the rate limit, so that the session completes soon.
            try await program.succeed("resume", first)
            try await program.succeed("set", first, "--rate", "0")
            try await run.event("completed", of: first)
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)
            #expect(studio.arrivals == ["a", "g", "f", "j", "b", "e", "h", "i"])
            let states = try await program.succeed("list", "--json").objects().map { $0["state"] as? String }
            #expect(states == ["completed", "completed", "completed", "held", "cancelled"] + Array(repeating: "completed", count: 5))
            #expect(try studio.hasArrived("a"))
        }
    }

    /// A tus upload in one request is confirmed only when the request ends. Until then, `list` shows the sent bytes.
    @Test func listShowsSentBytes() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 1 << 20)
            let id = try await program.succeed("add", "studio", "a", "--rate", "256K").lines[0]
            let run = try RunningQueue(program, "--forever")
            let progress = try await run.event("progress", of: id) { ($0["bytesSent"] as? Int ?? 0) > 1 << 18 }
            try #require(progress["bytesDone"] as? Int == 0)
            let row = try #require(try await program.succeed("list").lines.last)
            #expect(try #require(row.firstMatch(of: /(\d+)%/).flatMap { Int($0.1) }) >= 25, "\(row)")
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)
        }
    }

    @Test func changesQueueMode() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            try program.folder.file("b", size: 10)
            let ids = [
                try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0],
                try await program.succeed("add", "studio", "b").lines[0],
            ]
            let run = try RunningQueue(program, "--forever")
            try await run.progress(of: ids[0])
            let mode = { (command: String) in try await program.succeed("queue", command, "--json").objects().first?["mode"] as? String }
            #expect(try await mode("stop") == "stopped")
            try await run.event("queueStopped")
            #expect(try await studio.session(ids[0])["state"] as? String == "waiting")
            #expect(try await mode("start") == "running")
            try await run.progress(of: ids[0])
            #expect(try await mode("drain") == "draining")
            try await program.succeed("set", ids[0], "--rate", "0")
            try await run.event("queueStopped")
            let states = try await program.succeed("list", "--json").objects().map { $0["state"] as? String }
            #expect(states == ["completed", "waiting"])
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)
        }
    }

    /// The server asked clients to wait for an hour. `account retry` ends this wait for both sessions.
    @Test func retriesUnavailableEndpoint() async throws {
        let isBusy = Locked(true)
        let server = try ScriptedServer { _, _ in
            isBusy.withLock { $0 } ? [.answer(429, ["Retry-After": "3600"])] : [.answer(201)]
        }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        for name: String in ["a", "b"] { try program.folder.file(name, size: 10) }
        let ids = try await program.succeed("add", "bucket", "a", "b", "--each").lines
        let run = try RunningQueue(program, "--forever", "--max-sessions", "1")
        defer { run.command.send(SIGTERM) }
        try await run.event("attemptFailed", of: ids[0])
        let sessions = { try await program.succeed("list", "--json").objects() }
        // The run of the first session ends a moment after its failed attempt.
        while try await sessions().contains(where: { $0["state"] as? String != "waiting" }) { await Task.yield() }
        #expect(try await program.succeed("why", ids[1]).output.contains("asked to back off"))
        isBusy.withLock { $0 = false }
        try await program.succeed("account", "retry", "bucket")
        // Without `account retry`, both sessions would still wait.
        let retried = try await sessions()
        try #require(retried.contains { $0["state"] as? String != "waiting" })
        for _ in ids { try await run.event("completed") }
        #expect(server.requests.map(\.path) == ["/in/a", "/in/a", "/in/b"])
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
    }

    @Test func endsRunWhenQueueIsStopped() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0]
            let run = try RunningQueue(program)
            try await run.progress(of: id)
            try await program.succeed("queue", "stop")
            #expect(await run.command.result().status == 1)
            #expect(try await studio.session(id)["state"] as? String == "waiting")
        }
    }

    @Test(arguments: [("hold", 1), ("cancel", 0), ("remove", 0)] as [(String, Int32)])
    func runFailsIfStartedSessionIsHeldButNotIfCancelledOrRemoved(operation: String, status: Int32) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0]
            try program.folder.file("b", size: 10)
            // This session is held before the run, so it does not affect the exit status.
            try await program.succeed("add", "studio", "b", "--hold")
            let run = try RunningQueue(program)
            try await run.progress(of: id)
            try await program.succeed(operation, id)
            let result = await run.command.result()
            #expect(result.status == status, "\(result.diagnostics)")
        }
    }

    #if os(Linux)
        @Test(arguments: [true, false]) func watchFailsOnFullDisk(hasOwner: Bool) async throws {
            let program = try TransferQ()
            try await program.succeed("account", "add", "studio", "https://one.example/")
            try program.folder.file("a", size: 1)
            try await program.succeed("add", "studio", "a", "--hold")
            let run = hasOwner ? try RunningQueue(program, "--forever") : nil
            try await run?.event("queueStarted")
            let command = "exec \"$0\" watch --json --follow > /dev/full"
            let watch = try program.start("/bin/sh", ["-c", command, TransferQ.executable.string].map { Array($0.utf8) })
            let result = await watch.result()
            #expect(result.status == 1 && result.diagnostics.contains("Cannot write the output"), "\(result.testDescription)")
            run?.command.send(SIGTERM)
            if let run { #expect(await run.command.result().status == 130) }
        }
    #endif

    @Test func watchesRunningQueue() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let run = try RunningQueue(program, "--forever")
            try await run.event("queueStarted")
            let watch = try program.start(["watch", "--json"])
            var lines = watch.lines.makeAsyncIterator()
            while let line = await lines.next(), try CommandResult.object(line)["event"] as? String != "queueStarted" {}
            try program.folder.file("a", size: 10)
            let id = try await program.succeed("add", "studio", "a").lines[0]
            while let line = await lines.next() {
                let event = try CommandResult.object(line)
                if event["event"] as? String == "completed", event["id"] as? String == id { break }
            }
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)
            let result = await watch.result()
            #expect(result.status == 0)
            #expect(try result.objects().last?["event"] as? String == "queueStopped")
        }
    }

    @Test func replacesSocketOfKilledOwner() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 10)
            let run = try RunningQueue(program, "--forever")
            try await run.event("queueStarted")
            let second = try await program.run("run")
            #expect(second.status == 3 && second.diagnostics.contains("Process \(run.command.processID)"), "\(second.testDescription)")
            let socket = program.store.appending("control.sock").string
            #expect(try FileManager.default.attributesOfItem(atPath: socket)[.posixPermissions] as? Int == 0o600)
            // A killed owner leaves its socket behind.
            run.command.send(SIGKILL)
            #expect(await run.command.result().wasKilled)
            #expect(FileManager.default.fileExists(atPath: socket))
            try await program.succeed("add", "studio", "a")
            let again = try RunningQueue(program)
            #expect(await again.command.result().status == 0)
            #expect(!FileManager.default.fileExists(atPath: socket))
            #expect(try studio.hasArrived("a"))
        }
    }

    /// Owners start and stop while commands run. Each command reaches an owner or opens the queue itself. No command is lost or performed
    /// twice.
    @Test func completesCommandsWhileOwnersChange() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 10)
            let ids = try await withThrowingTaskGroup(of: [String].self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        var ids: [String] = []
                        for _ in 0..<4 { ids += try await program.succeed("add", "studio", "a", "--hold").lines }
                        return ids
                    }
                }
                for _ in 0..<4 {
                    let run = try RunningQueue(program, "--forever")
                    try await run.event("queueStarted")
                    run.command.send(SIGTERM)
                    #expect(await run.command.result().status == 130)
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let listed = try await program.succeed("list", "--json").objects().compactMap { $0["id"] as? String }
            #expect(Set(listed) == Set(ids) && listed.count == 12)
        }
    }

    @Test func waitsForOwnerWithTooManyOpenFiles() async throws {
        let program = try TransferQ()
        let script = "ulimit -n 40; exec \"$0\" run --forever --json"
        let run = try program.start("/bin/sh", [Array("-c".utf8), Array(script.utf8), TransferQ.executable.bytes])
        for await line in run.lines {
            if try CommandResult.object(line)["event"] as? String == "queueStarted" { break }
        }
        let remote = RemoteTransferQueue(folder: program.store, timeout: .seconds(60))
        do {
            // The owner can't open as many files as there are clients.
            var readers: [Task<Void, any Error>] = []
            for _ in 0..<40 {
                readers.append(Task { for try await _ in remote.events {} })
            }
            while !run.diagnostics.contains("must wait") { await Task.yield() }
            for reader in readers { reader.cancel() }
        }
        try await program.succeed("list")
        run.send(SIGTERM)
        let result = await run.result()
        #expect(result.status == 130)
        #expect(result.diagnostics.contains("Too many open files"))
    }

    @Test func reportsSilentOwner() async throws {
        let program = try TransferQ()
        let run = try RunningQueue(program, "--forever")
        try await run.event("queueStarted")
        run.command.send(SIGSTOP)
        let result = try await program.run("list")
        run.command.send(SIGCONT)
        #expect(result.status == 3)
        #expect(result.diagnostics.contains("is not responding"))
        try await program.succeed("list")
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
    }
}
