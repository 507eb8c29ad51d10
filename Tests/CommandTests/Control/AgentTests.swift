import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCommands
import TransferControl
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.serialized) struct AgentTests {
    @Test func keepsRunningAfterShellExits() async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            // The shell exits at the end of its script. The agent runs in its own process session (setsid(2)).
            let script = Array("\"$0\" agent start --json".utf8)
            let shell = try program.start("/bin/sh", [Array("-c".utf8), script, TransferQ.executable.bytes])
            let started = await shell.result()
            #expect(started.status == 0, "\(started.testDescription)")
            let agent = try #require(try started.objects().first)
            let process = try #require(agent["process"] as? Int32)
            #expect(getsid(process) == process)
            let status = try await program.succeed("agent", "status", "--json").objects().first
            #expect(status?["process"] as? Int32 == process && status?["running"] as? Bool == true)
            #expect(status?["mode"] as? String == "running")
            let owner = try await program.run("doctor", "--json").objects().first { $0["check"] as? String == "owner" }
            #expect(
                owner?["process"] as? Int32 == process && owner?["role"] as? String == "agent" && owner?["mode"] as? String == "running")
            // A second `agent start` reports the same agent.
            #expect(try await program.succeed("agent", "start", "--json").objects().first?["process"] as? Int32 == process)

            try program.folder.file("a", size: 1_000)
            let id = try await program.succeed("add", "studio", "a").lines[0]
            try await studio.arrival(of: id)
            #expect(try studio.hasArrived("a"))

            try await program.succeed("agent", "stop")
            #expect(try await program.run("agent", "status").status == 4)
            #expect(try await program.run("agent", "stop").status == 4)
            let log = program.store.appending("agent.log").string
            #expect(try FileManager.default.attributesOfItem(atPath: log)[.posixPermissions] as? Int == 0o600)
            let text = try String(contentsOfFile: log, encoding: .utf8)
            #expect(text.contains("ready") && text.contains("has stopped"))
            #expect(text.contains("A session completed. account=studio queue=\(program.store) session=\(id)"))
        }
    }

    @Test(arguments: [SIGKILL, SIGTERM]) func canBeStartedAgainAfterExit(signal: Int32) async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0]
            let first = try #require(
                try await program.succeed("agent", "start", "--json").objects().first?["process"] as? Int32)
            let remote = RemoteTransferQueue(folder: program.store, timeout: .seconds(60))
            for try await event in remote.events(since: 0) {
                if case .progress(_, let figures) = event.kind, figures.bytesSent > 0 { break }
            }
            #expect(kill(first, signal) == 0)
            // `list` waits for the owner lock, which the agent releases when it exits.
            try await program.succeed("list")
            // A killed agent can't log a last message.
            let log = try String(contentsOfFile: program.store.appending("agent.log").string, encoding: .utf8)
            #expect(log.contains("The agent has stopped.") == (signal == SIGTERM))
            let second = try #require(
                try await program.succeed("agent", "start", "--json").objects().first?["process"] as? Int32)
            #expect(second != first)
            try await program.succeed("set", id, "--rate", "0")
            try await studio.arrival(of: id)
            #expect(try studio.hasArrived("a"))
        }
    }

    /// The agent has no terminal, so SIGHUP does not stop it.
    @Test func ignoresHangUp() async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            let agent = try #require(try await program.succeed("agent", "start", "--json").objects().first?["process"] as? Int32)
            #expect(kill(agent, SIGHUP) == 0)
            try program.folder.file("a", size: 100)
            try await studio.arrival(of: program.succeed("add", "studio", "a").lines[0])
            let status = try await program.succeed("agent", "status", "--json").objects().first
            #expect(status?["process"] as? Int32 == agent)
        }
    }

    @Test func rejectsStartWithInvalidFolderOrOtherOwner() async throws {
        let program = try TransferQ()
        let file = try program.folder.file("file", size: 1)
        let result = try await program.run("agent", "start", "--store", file.string)
        #expect(result.status == 3 && result.diagnostics.contains(file.string), "\(result.testDescription)")
        let run = try RunningQueue(program, "--forever")
        try await run.event("queueStarted")
        let second = try await program.run("agent", "start")
        #expect(second.status == 3 && second.diagnostics.contains("Process \(run.command.processID)"), "\(second.testDescription)")
        #expect(try await program.run("agent", "stop").status == 4)
        run.command.send(SIGTERM)
        _ = await run.command.result()
    }

    @Test func rotatesLogAtGivenSize() async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            #expect(try await program.run("agent", "start", "--log-size", "100").status == 2)
            try await program.succeed("agent", "start", "--log-size", "4K", "-v")
            for number in 0..<10 {
                try program.folder.file("\(number)", size: 10)
                try await studio.arrival(of: program.succeed("upload", "studio", "\(number)").lines[0])
            }
            try await program.succeed("agent", "stop")
            let sizes = try ["agent.log", "agent.log.1"].map { name in
                try FileManager.default.attributesOfItem(atPath: program.store.appending(name).string)[.size] as? Int ?? .max
            }
            #expect(sizes.allSatisfy { $0 < 8_192 }, "\(sizes)")
        }
    }

    /// An agent that follows links could be tricked into overwriting any file of its user.
    @Test(arguments: [true, false]) func rejectsLinkedLog(targetExists: Bool) async throws {
        let program = try TransferQ()
        // Creates the storage folder.
        try await program.succeed("account", "add", "studio", "https://one.example/")
        if targetExists { try program.folder.file("target", bytes: [1, 2, 3]) }
        let target = program.folder.path.appending("target").string
        let link = program.store.appending("agent.log").string
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        let refused = try await program.run("agent", "start")
        #expect(refused.status == 3, "\(refused.testDescription)")
        #expect(refused.diagnostics.contains(link) && refused.diagnostics.contains("links"), "\(refused.testDescription)")
        #expect(FileManager.default.contents(atPath: target) == (targetExists ? Data([1, 2, 3]) : nil))
        #expect(try await program.run("agent", "status").status == 4)
        try FileManager.default.removeItem(atPath: link)
        try await program.succeed("agent", "start")
        try await program.succeed("agent", "stop")
    }

    /// An app adds a session and exits. When the app runs again, it receives the events that it missed.
    @Test func continuesUploadsAfterAppExits() async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            try await program.succeed("agent", "start")
            let file = try program.folder.file("a", size: 100_000)
            let app = RemoteTransferQueue(folder: program.store, timeout: .seconds(60))
            let known = try await app.status().revision
            let id = try await app.enqueue(.upload([file], to: "studio"))
            try await studio.arrival(of: id.description)
            let later = RemoteTransferQueue(folder: program.store, timeout: .seconds(60))
            for try await event in later.events(since: known) where event.kind == .completed(id) { break }
            #expect(try await later.value(of: id).state == .completed)
        }
    }

    @Test func reordersSessionsWhileRunning() async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            try program.folder.sparseFile("a", size: 64 << 20)
            for name: String in ["b", "c", "d"] { try program.folder.file(name, size: 1_000) }
            let first = try await program.succeed("add", "studio", "a", "--rate", "64K").lines[0]
            let others = try await program.succeed("add", "studio", "b", "c", "d", "--each").lines
            try await program.succeed("agent", "start", "--max-sessions", "1")
            try await studio.waitForProgress(of: first)
            try await program.succeed("move", others[2], "1")
            #expect(try await program.succeed("list", "--json").objects().map { $0["name"] as? String } == ["a", "d", "b", "c"])
            // The first session is interrupted and resumes later.
            try await program.succeed("now", others[1])
            try await studio.arrival(of: others[1])
            try await studio.waitForProgress(of: first)
            #expect(try await studio.session(others[2])["state"] as? String == "waiting")
            try await program.succeed("set", first, "--rate", "0")
            try await studio.arrival(of: others[0])
            #expect(studio.arrivals == ["a", "c", "d", "b"])
            #expect(try studio.hasArrived("a"))
        }
    }

    /// The agent has a pipe to the process that started it. Programs that a transport starts must not inherit this pipe.
    @Test func closesStarterPipeInChildren() throws {
        let (reading, writing) = try FileDescriptor.pipe()
        defer { try? reading.close() }
        defer { try? writing.close() }
        let starter = StartReporter(writing)
        #expect(fcntl(writing.rawValue, F_GETFD) & FD_CLOEXEC != 0)
        withExtendedLifetime(starter) {}
    }

    @Test func runsInForeground() async throws {
        let program = try TransferQ()
        let agent = try program.start(["agent", "run"])
        while try await program.run("agent", "status").status != 0 { await Task.yield() }
        agent.send(SIGTERM)
        let result = await agent.result()
        #expect(result.status == 0 && result.output == "" && result.diagnostics.contains("ready"), "\(result.testDescription)")
    }

    @Test func printsSystemdUnit() async throws {
        let program = try TransferQ()
        let unit = try await program.succeed("agent", "unit", "--store", "/a folder/100%/$x\"y\\").output
        #expect(unit.contains("ExecStart=\"\(TransferQ.executable)\" \"agent\" \"run\" \"--store\" \"/a folder/100%%/$$x\\\"y\\\\\"\n"))
        #expect(unit.hasPrefix("[Unit]\n") && unit.contains("WantedBy=default.target\n"))
        for setting in [
            "LimitCORE=0", "NoNewPrivileges=yes", "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "RestrictSUIDSGID=yes",
            "RestrictRealtime=yes", "RestrictNamespaces=yes", "SystemCallArchitectures=native",
        ] {
            #expect(unit.contains("\n\(setting)\n"), "\(setting)")
        }
    }

    @Test func rotatesLog() async throws {
        let folder = try TemporaryFolder()
        let log = folder.path.appending("log")
        let rotating = try RotatingLog(at: log, limit: 100, rotatedFiles: 2, redirectsStandardError: false)
        for number in 0..<40 { rotating.post("line \(number) of about twenty") }
        await rotating.flush()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path.string).sorted()
        #expect(files == ["log", "log.1", "log.2"])
        let text = try files.reversed().map { try String(contentsOfFile: folder.path.appending($0).string, encoding: .utf8) }.joined()
        let numbers = text.split(separator: "\n").compactMap { $0.split(separator: " ").dropFirst().first.flatMap { Int($0) } }
        #expect(numbers == Array(40 - numbers.count..<40) && numbers.count >= 9)
    }
}

extension LoopbackStudio {
    /// Calls ``with(_:_:)``, and stops the agent when `body` has returned or thrown an error.
    static func withAgent(_ body: (LoopbackStudio) async throws -> Void) async throws {
        try await with { studio in
            do {
                try await body(studio)
            } catch {
                _ = try? await studio.program.run("agent", "stop")
                throw error
            }
            _ = try await studio.program.run("agent", "stop")
        }
    }

    fileprivate func waitForProgress(of id: String) async throws {
        let before = try await session(id)["bytesSent"] as? Int64 ?? 0
        for try await event in RemoteTransferQueue(folder: program.store, timeout: .seconds(60)).events {
            if case .progress(let session, let figures) = event.kind, session.description == id, figures.bytesSent > before { return }
        }
    }

    /// Waits until the agent has completed a session.
    func arrival(of id: String) async throws {
        let session = try #require(SessionID(id))
        _ = try await RemoteTransferQueue(folder: program.store, timeout: .seconds(60)).value(of: session)
    }
}
