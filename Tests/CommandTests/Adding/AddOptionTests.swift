import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCommands
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.serialized) struct AddOptionTests {
    @Test(arguments: [nil, "day/one"] as [String?])
    func uploadsFolder(to: String?) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for folder: String in ["shots/one/deep", "shots/two", "shots/empty"] {
                try FileManager.default.createDirectory(
                    atPath: program.folder.path.pushing(FilePath(folder)).string, withIntermediateDirectories: true)
            }
            let files = ["shots/a", "shots/one/b", "shots/one/deep/c", "shots/two/b"]
            for (index, name) in files.enumerated() {
                let path = try program.folder.file("scratch", size: 1_000 + index, seed: UInt64(index))
                try FileManager.default.moveItem(atPath: path.string, toPath: program.folder.path.pushing(FilePath(name)).string)
            }
            let option = to.map { ["--to", $0] } ?? []
            let id = try await program.run(["add", "studio", "shots/"] + option).lines[0]
            try await program.succeed("run", "--progress", "none")
            let session = try await studio.session(id)
            #expect(session["state"] as? String == "completed")
            #expect(session["name"] as? String == "shots")
            #expect(session["files"] as? Int == 4)
            let items = try #require(session["items"] as? [[String: Any]])
            let names = files.map { (to.map { "\($0)/" } ?? "") + $0 }
            #expect(items.compactMap { $0["destination"] as? String } == names)
            let stored = try studio.storedByPath()
            #expect(Set(stored.keys) == Set(names))
            for (file, name) in zip(files, names) {
                let local = program.folder.path.pushing(FilePath(file)).string
                #expect(FileManager.default.contentsEqual(atPath: try #require(stored[name]), andPath: local))
            }
        }
    }

    @Test func addsWorkingDirectory() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let id = try await program.succeed("add", "studio", ".", "--to", "x").lines[0]
        let shown = try #require(try await program.succeed("show", id, "--json").objects().first)
        let item = try #require((shown["items"] as? [[String: Any]])?.first)
        let name = try #require(program.folder.path.lastComponent).string
        #expect(item["destination"] as? String == "x/\(name)")
    }

    @Test func addsHundredThousandPaths() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let paths = Array(repeating: "a\0", count: 100_000).joined()
        let id = try await program.succeed("add", "studio", "--stdin", "--to", "x", input: Array(paths.utf8)).lines[0]
        let session = try #require(try await program.succeed("list", "--json").objects().first)
        #expect(session["id"] as? String == id)
        #expect(session["files"] as? Int == 100_000 && session["bytesTotal"] as? Int == 100_000)
    }

    @Test func addsHundredThousandPathsThroughOwner() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let folder = program.folder.path.appending("many")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        // The paths are hard links to two files, because a file on ext4 can have at most 65,000 links.
        let files = try [program.folder.file("a", size: 1), program.folder.file("b", size: 1)]
        let count = 100_000
        for number in 0..<count { #expect(unsafe link(files[number % 2].string, "\(folder)/\(number)") == 0) }
        let run = try RunningQueue(program, "--forever")
        try await run.event("queueStarted")
        let input = (0..<count).map { "many/\($0)\n" }.joined()
        let id = try await program.succeed("add", "studio", "-", "--hold", input: Array(input.utf8)).lines[0]
        let session = try #require(try await program.succeed("list", "--json").objects().first)
        #expect(session["id"] as? String == id)
        #expect(session["files"] as? Int == count && session["bytesTotal"] as? Int == count)
        let queue = RemoteTransferQueue(folder: program.store, timeout: .seconds(60))
        let last = try await queue.items(of: try #require(SessionID(id)), from: 0, limit: 1)
        #expect(last.first?.source == folder.appending("0"))
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
    }

    /// `--parallel` limits how many files of a session, or segments of a large file, are in flight at the same time.
    @Test(.timeLimit(.minutes(10)), arguments: [true, false]) func limitsFilesInFlight(isOneLargeFile: Bool) async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 4 << 20)) { studio in
            let program = studio.program
            let names = isOneLargeFile ? ["large"] : (0..<6).map { "\($0)" }
            for name in names { try program.folder.sparseFile(name, size: isOneLargeFile ? 1 << 30 : 48 << 20) }
            // With this threshold, only the large file is split into segments.
            try await program.succeed("account", "edit", "studio", "--setting", "parallelThreshold=\(64 << 20)")
            try await program.run(["add", "studio", "--parallel", "3"] + names).expectSuccess()
            // Stalls each upload at 1 MiB, so that no upload completes before all permitted uploads have started.
            studio.server.stopContent(at: 1 << 20)
            let run = try RunningQueue(program)
            while studio.server.statistics.bytesStored < 3 << 20 {
                try Task.checkCancellation()
                await Task.yield()
            }
            var maximum = studio.contentRequestsInFlight
            studio.server.stopContent(at: nil)
            // Without the limit, a fourth file or segment would start before 16 MiB have arrived.
            while studio.server.statistics.bytesStored < 16 << 20 {
                try Task.checkCancellation()
                maximum = max(maximum, studio.contentRequestsInFlight)
                await Task.yield()
            }
            #expect(maximum == 3)
            run.command.send(SIGTERM)
            #expect(await run.command.result().status == 130)
        }
    }

    @Test func returnsExistingSessionForSameKey() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("a", size: 1)
            let first = try await program.succeed("add", "studio", "a", "--dedupe", "k").lines
            #expect(try await program.succeed("add", "studio", "a", "--dedupe", "k").lines == first)
            // An existing session keeps its state and position.
            try await program.succeed("hold", first[0])
            for position in ["--now", "--next"] {
                #expect(try await program.succeed("add", "studio", "a", "--dedupe", "k", position).lines == first)
                #expect(try await program.succeed("show", first[0], "--json").objects().first?["state"] as? String == "held")
            }
            try await program.succeed("release", first[0])
            #expect(try await program.succeed("add", "studio", "a", "--dedupe", "other").lines != first)
            try await program.succeed("run", "--progress", "none")
            #expect(try await program.succeed("add", "studio", "a", "--dedupe", "k", "--dedupe-completed").lines == first)
            #expect(try await program.succeed("show", first[0], "--json").objects().first?["state"] as? String == "completed")
            #expect(try await program.succeed("add", "studio", "a", "--dedupe", "k").lines != first)
        }
    }

    @Test func parsesStartTimes() async throws {
        var program = try TransferQ()
        program.environment = ["TZ": "America/New_York"]
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let times = [
            ("2100-06-01T12:00:00Z", 4_115_534_400.0), ("2100-06-01T12:00:00.25+02:00", 4_115_527_200.25),
            ("2100-06-01 12:00-0130", 4_115_539_800), ("2100-06-01T12:00", 4_115_548_800), ("2100-06-01", 4_115_505_600),
        ]
        var expected: [String: Double] = [:]
        for (text, seconds) in times {
            let id = try await program.succeed("add", "studio", "a", "--not-before", text).lines[0]
            expected[id] = seconds
        }
        let before = Date()
        let relative = try await program.succeed("add", "studio", "a", "--not-before", "+90m").lines[0]
        let queue = try await TransferQueue(
            storage: .folder(program.store), transports: RegisteredTransports.builtIn.all.map(\.transport))
        // A stopped queue would report only that it is stopped, not the start times.
        try await queue.start()
        let sessions = try await queue.sessions()
        await queue.shutdown()
        for session in sessions {
            guard case .notBefore(let date)? = session.why else {
                Issue.record("\(session.id) does not wait for its start time")
                continue
            }
            if session.id.description == relative {
                #expect((before + 5_400...Date() + 5_400).contains(date))
            } else {
                #expect(date.timeIntervalSince1970 == expected[session.id.description])
            }
        }
        let run = try await program.run("run", "--no-wait", "--progress", "none")
        #expect(run.status == 0, "no session needs user action")
    }

    @Test func uploadsInChunks() async throws {
        try await LoopbackStudio.with { studio in
            try studio.program.folder.file("a", size: 5 << 19)
            try await studio.program.succeed("add", "studio", "a", "--chunk", "1M", "--parallel", "2")
            try await studio.program.succeed("run", "--progress", "none")
            #expect(try studio.hasArrived("a"))
            #expect(studio.server.statistics.requests == ["OPTIONS": 1, "POST": 1, "PATCH": 3])
        }
    }

    @Test func endsStalledAttempt() async throws {
        try await LoopbackStudio.with { studio in
            // Half of the file is larger than the socket buffers, so the client can't send the rest when the server stops at this offset.
            let size = 64 << 20
            try studio.program.folder.file("a", size: size)
            studio.server.stopContent(at: Int64(size / 2))
            let id = try await studio.program.succeed("add", "studio", "a", "--stall-timeout", "0.2").lines[0]
            _ = try await studio.program.run("run", "--no-wait", "--progress", "none")
            let session = try await studio.session(id)
            #expect(session["state"] as? String == "waiting")
            #expect((session["error"] as? [String: Any])?["code"] as? String == "stalled", "\(session)")
        }
    }

    @Test func failsVerificationWithoutServerChecksums() async throws {
        try await LoopbackStudio.with(LoopbackOptions(extensions: [], servesDownloads: false)) { studio in
            let program = studio.program
            try program.folder.file("a", size: 1)
            try program.folder.file("b", size: 1)
            let id = try await program.succeed("add", "studio", "a", "--verify", "checksum").lines[0]
            try await program.succeed("add", "studio", "b", "--verify", "none", "--parallel", "3")
            #expect(try await program.run("run", "--progress", "none").status == 1)
            #expect(try await studio.session(id)["state"] as? String == "failed")
            #expect(studio.server.storedFiles(named: "b").count == 1)
        }
    }
}

extension LoopbackStudio {
    /// The number of `PATCH` requests whose content has begun to arrive, and that have no response yet.
    fileprivate var contentRequestsInFlight: Int {
        server.statistics.uploads.reduce(0) { $0 + $1.requests.count { $0.method == "PATCH" && $0.received > 0 && $0.status == nil } }
    }

    /// Returns the local path of each file on the server, keyed by the path in the file's metadata. Expects that all files are complete.
    fileprivate func storedByPath() throws -> [String: String] {
        let folder = program.folder.path.appending("server").string
        var files: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".json") {
            let record = try CommandResult.object(String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8))
            let metadata = try #require(record["metadata"] as? [String: String])
            let path = try #require(metadata["relativePath"] ?? metadata["filename"])
            #expect(record["complete"] as? Bool == true)
            files[path] = "\(folder)/\(name.dropLast(".json".count)).bin"
        }
        return files
    }
}
