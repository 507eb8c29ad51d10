import Foundation
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing

@Suite struct RunTests {
    @Test func uploadsThreeFiles() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for (name, size) in [("a", 3_000_000), ("b", 0), ("c", 1)] as [(String, Int)] {
                try program.folder.file(name, size: size, seed: UInt64(size))
            }
            let id = try await program.succeed("add", "studio", "a", "b", "c").lines[0]
            let run = try await program.succeed("run")
            #expect(run.output == "")
            #expect(run.diagnostics.contains("completed  \(id.prefix(8)) a and 2 more"))
            #expect(run.diagnostics.contains("1 session completed. Completed 3 files, 2.86 MiB, in "), "\(run.diagnostics)")
            for name: String in ["a", "b", "c"] { #expect(try studio.hasArrived(name)) }
            let session = try await studio.session(id)
            #expect(session["state"] as? String == "completed")
            #expect(session["filesDone"] as? Int == 3)
            #expect(session["bytesDone"] as? Int == 3_000_001)
            #expect(session["endedAt"] is String)
            #expect(session["endpoint"] as? String == studio.url.absoluteString)
            let items = try #require(session["items"] as? [[String: Any]])
            #expect(items.allSatisfy { ($0["remoteURL"] as? String)?.hasPrefix(studio.url.absoluteString) == true })
        }
    }

    /// The list shows progress even if the server confirms no bytes before the end of a request.
    @Test func listShowsUnconfirmedBytes() async throws {
        let size = 4 << 20
        let server = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])]
            case "POST": [.tus(201, ["Location": "/files/1"])]
            case "PATCH": [.skip(size / 2), .silence]
            default: [.tus(200, ["Upload-Offset": "0", "Upload-Length": "\(size)"])]
            }
        }
        defer { server.stop() }
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", server.url(), "--setting", "singleRequestSize=0")
        try program.folder.sparseFile("reel", size: Int64(size))
        let id = try await program.succeed("add", "studio", "reel").lines[0]
        let run = try RunningQueue(program)
        try await run.event("progress", of: id) { ($0["bytesSent"] as? Int ?? 0) > size / 10 }
        let (list, session) = (try await program.succeed("list").lines[1], try await program.succeed("show", id, "--json").objects().first)
        run.command.send(SIGINT)
        _ = await run.command.result()
        #expect(list.contains(/running +[1-9]\d*% +4\.00 MiB/), "\(list)")
        #expect(session?["bytesDone"] as? Int == 0, "\(list)")
    }

    @Test func printsEventsAsJSON() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 1_000_000)
            try program.folder.file("b", size: 10)
            let ids = try await program.succeed("add", "studio", "a", "b", "--each").lines
            let events = try await program.succeed("run", "--progress", "json").objects()
            #expect(events.allSatisfy { SessionSchema.event.isSubset(of: $0.keys) })
            let revisions = events.compactMap { $0["revision"] as? Int }
            #expect(revisions == revisions.sorted())
            let named = events.map { [$0["event"] as? String ?? "", $0["id"] as? String ?? ""] }.filter { $0[0] != "progress" }
            let names = [
                "willActivate", "didActivate", "willStartRunning", "didStartRunning", "itemCompleted", "willStopRunning", "didStopRunning",
                "willDeactivate", "didDeactivate", "completed",
            ]
            #expect(
                named == [["queueStarted", ""]] + names.map { [$0, ids[0]] } + names.map { [$0, ids[1]] } + [
                    ["queueBecameIdle", ""], ["queueStopped", ""],
                ])
            #expect(events.allSatisfy { ($0["index"] as? Int) == ids.firstIndex(of: $0["id"] as? String ?? "") })
            let progress = try #require(events.last { $0["event"] as? String == "progress" && $0["id"] as? String == ids[0] })
            #expect(progress["bytesDone"] as? Int == 1_000_000)
        }
    }

    @Test func endsImmediatelyWithEmptyQueue() async throws {
        let program = try TransferQ()
        let run = try await program.succeed("run", "--json")
        #expect(try run.objects().map { $0["event"] as? String } == ["queueStarted", "queueBecameIdle", "queueStopped"])
        #expect(try await program.succeed("run", "--progress", "none").diagnostics == "")
        #expect(try await program.succeed("run").diagnostics.contains("no session to run. To add one: transferq upload"))
    }

    @Test func reportsFailedSession() async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            let program = studio.program
            try program.folder.file("large", size: 6)
            try program.folder.file("small", size: 5)
            let ids = try await program.succeed("add", "studio", "large", "small", "--each").lines
            let run = try await program.run("run")
            #expect(run.status == 1)
            #expect(run.diagnostics.contains("1 session completed, 1 failed."))
            #expect(run.diagnostics.contains("transferq show \(ids[0].prefix(8))."), "\(run.diagnostics)")
            #expect(run.diagnostics.contains("transferq retry \(ids[0].prefix(8)), then transferq run"), "\(run.diagnostics)")
            let session = try await studio.session(ids[0])
            let error = try #require(session["error"] as? [String: Any])
            #expect(Set(error.keys) == SessionSchema.error)
            #expect(session["state"] as? String == "failed")
            #expect(try studio.hasArrived("small"))
            #expect(try await program.succeed("list", "--completed", "--json").objects().map { $0["id"] as? String } == [ids[1]])
            // Earlier failures don't count in this run.
            #expect(try await program.run("run").status == 0)
            #expect(try await program.succeed("remove", "--failed").lines == [ids[0]])
        }
    }

    @Test func reportsBlockedAccount() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 5)
            try await program.succeed("account", "add", "locked", studio.url.absoluteString, "--token-env", "NOT_SET_ANYWHERE")
            let id = try await program.succeed("add", "locked", "a").lines[0]
            let run = try await program.run("run")
            #expect(run.status == 1)
            #expect(run.diagnostics.contains("NOT_SET_ANYWHERE") && run.diagnostics.contains("account unblock 'locked'"))
            let account = try #require(try await program.succeed("account", "show", "locked", "--json").objects().first)
            #expect((account["blocked"] as? [String: Any])?["class"] as? String == "credentials")
            let doctor = try await program.run("doctor")
            #expect(doctor.status == 1 && doctor.output.contains("blocked"))
            try await program.succeed("account", "unblock", "locked")
            #expect(try await program.succeed("account", "show", "locked", "--json").objects().first?["blocked"] is NSNull)
            #expect(try await studio.session(id)["state"] as? String == "waiting")
        }
    }

    @Test func endsWithoutWaitingForRetry() async throws {
        let program = try TransferQ()
        // No process listens on the discard port of this machine.
        try await program.succeed("account", "add", "nowhere", "http://127.0.0.1:9/")
        try program.folder.file("a", size: 5)
        try await program.succeed("add", "nowhere", "a")
        let run = try await program.run("run", "--no-wait")
        #expect(run.status == 1)
        #expect(try await program.succeed("list", "--json", "--state", "waiting").lines.count == 1)
    }

    @Test func findsWaitingSessionAfterManyHeldSessions() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "nowhere", "http://127.0.0.1:9/")
        try program.folder.file("a", size: 5)
        let names = Array(repeating: "a", count: 1_001).joined(separator: "\n")
        try await program.succeed("add", "nowhere", "-", "--each", "--hold", input: Array(names.utf8))
        try await program.succeed("add", "nowhere", "a")
        #expect(try await program.run("run", "--no-wait").status == 1)
    }

    @Test func reportsReasonForWaiting() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "nowhere", "http://127.0.0.1:9/")
        try program.folder.file("a", size: 5)
        let id = try await program.succeed("add", "nowhere", "a").lines[0]
        let run = try program.start(["run", "--progress", "plain"])
        while !run.diagnostics.contains(/waiting {4}\w+ a: retries (in \d+ s|now): Cannot reach/) { await Task.yield() }
        run.send(SIGINT)
        let result = await run.result()
        #expect(result.diagnostics.contains(/retrying {3}\w+ a in \d+ s: Cannot reach/), "\(result.diagnostics)")
        let why = try await program.succeed("why", id).output
        #expect(why.contains("/Troubleshooting.md in the repository, \"Servers and networks\"."), "\(why)")
    }

    /// If the first endpoint asked clients to back off, the line also contains the time of the next attempt at this endpoint.
    @Test(arguments: [true, false]) func reportsChangeOfEndpoint(asksToBackOff: Bool) async throws {
        let server = try ScriptedServer { _, _ in [.answer(503, ["Retry-After": "3000"])] }
        defer { server.stop() }
        try await LoopbackStudio.with { studio in
            let program = studio.program
            // The delay applies to a host name, so the two endpoints have different host names.
            let firstEndpoint = asksToBackOff ? "http+put://localhost:\(server.port)/in/" : "http://127.0.0.1:9/"
            try await program.succeed("account", "add", "both", firstEndpoint, studio.url.absoluteString)
            try program.folder.file("a", size: 5)
            try await program.succeed("add", "both", "a")
            let run = try await program.run("run", "--progress", "plain")
            let pattern = firstEndpoint.replacing("+", with: "\\+")
            let end = asksToBackOff ? "; next attempt at \(pattern) in \\d+ s" : ""
            let line = try Regex("moved .* from \(pattern) to http://127[^ ;]*\(end)\n")
            #expect(run.status == 0 && run.diagnostics.contains(line), "\(run.diagnostics)")
        }
    }

    /// By default, only warnings and errors are logged.
    @Test func logsMoreWhenVerbose() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "nowhere", "http://127.0.0.1:9/")
        try program.folder.file("a", size: 5)
        try await program.succeed("add", "nowhere", "a")
        #expect(!(try await program.run("run", "--no-wait")).diagnostics.contains("An attempt failed"))
        #expect(try await program.run("run", "--no-wait", "-v").diagnostics.contains("notice: An attempt failed"))
    }

    @Test func waitsForStartTime() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 5)
            let id = try await program.succeed("add", "studio", "a", "--not-before", "+2s").lines[0]
            #expect(try await program.run("run").status == 0)
            #expect(try studio.hasArrived("a"))
            let session = try #require(try await program.succeed("show", id, "--json").objects().first)
            let times = try ["createdAt", "startedAt"].map { try Date(#require(session[$0] as? String), strategy: .iso8601) }
            #expect(times[1].timeIntervalSince(times[0]) >= 1)
        }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func stopsCleanlyOnSignal(signal: Int32) async throws {
        // At this rate, the file takes two minutes, so the run can't complete before the signal.
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            let (id, run) = try await studio.beginRun()
            run.send(signal)
            let result = await run.result()
            #expect(result.status == 130 && !result.wasKilled, "\(result.diagnostics)")
            let events = try result.objects().compactMap { $0["event"] as? String }.filter { $0 != "progress" }
            #expect(
                events == [
                    "queueStarted", "willActivate", "didActivate", "willStartRunning", "didStartRunning", "willStopRunning",
                    "didStopRunning", "willDeactivate", "didDeactivate", "changed", "queueStopped",
                ])
            #expect(try await studio.session(id)["state"] as? String == "waiting")
        }
    }

    @Test func diagnosesEndpoints() async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 1 << 20)) { studio in
            let good = try await studio.program.run("doctor", "--json")
            #expect(good.status == 0, "\(good.output)")
            let endpoint = try #require(try good.objects().first { $0["check"] as? String == "endpoint studio" })
            #expect(endpoint["version"] as? String == "1.0.0")
            #expect((endpoint["features"] as? [String])?.contains("creation") == true)
            #expect(endpoint["maximumSize"] as? Int == 1 << 20)
            await studio.server.stop()
            let bad = try await studio.program.run("doctor")
            #expect(bad.status == 1)
            #expect(bad.output.contains(studio.url.absoluteString))
        }
    }

    @Test func reportsDependencyOnCancelledSession() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        for name in ["a", "b"] { try program.folder.file(name, size: 1) }
        let first = try await program.succeed("add", "studio", "a").lines[0]
        try await program.succeed("add", "studio", "b", "--after", first)
        try await program.succeed("cancel", first)
        let run = try await program.run("run", "--progress", "plain")
        #expect(run.status == 1 && run.diagnostics.contains("which is cancelled"), "\(run.testDescription)")
    }

    @Test(arguments: [["--max-sessions", "0"], ["--forever", "--no-wait"], ["--progress", "odd"], ["--json", "--progress", "bars"]])
    func rejectsInvalidOptions(options: [String]) async throws {
        let program = try TransferQ()
        #expect(try await program.run(["run"] + options).status == 2)
    }

    @Test func outageBeyondGiveUpTimeFailsSession() async throws {
        let program = try TransferQ()
        try program.folder.file("a", size: 1)
        // No process listens on the discard port of this machine.
        try await program.succeed("account", "add", "gone", "http://127.0.0.1:9/files/")
        let id = try await program.succeed("add", "gone", "a", "--give-up-after", "0").lines[0]
        #expect(try await program.run("run", "--progress", "none").status == 1)
        #expect(try await program.succeed("show", id, "--json").objects().first?["state"] as? String == "failed")
    }
}
