import Foundation
import SSHFixture
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore

/// `transferq stream`, with and without another process that runs the queue.
@Suite struct StreamCommandTests {
    /// Runs a shell script in which `$0` is the program.
    private static func shell(_ script: String, _ program: TransferQ) throws -> RunningCommand {
        try program.start("/bin/sh", [Array("-c".utf8), Array(script.utf8), TransferQ.executable.bytes])
    }

    /// Returns the content of the server's file with this name; nil unless the server has exactly one such file, and this file is complete.
    private static func content(of studio: LoopbackStudio, _ name: String) throws -> String? {
        let isComplete = studio.server.statistics.uploads.filter { $0.filename == name }.allSatisfy(\.isComplete)
        let stored = studio.server.storedFiles(named: name)
        return try isComplete && stored.count == 1 ? String(contentsOfFile: stored[0].string, encoding: .utf8) : nil
    }

    @Test(arguments: [false, true]) func sendsStandardInput(hasOwner: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let owner = hasOwner ? try RunningQueue(program, "--forever") : nil
            try await owner?.event("queueStarted")
            let result = try await Self.shell(#"(echo a; echo b) | "$0" stream studio day/log.txt --tag live"#, program).result()
            #expect(result.status == 0 && result.diagnostics == "", "\(result.testDescription)")
            let session = try await studio.session(try #require(result.lines.first))
            #expect(session["state"] as? String == "completed" && session["name"] as? String == "log.txt")
            #expect(session["bytesDone"] as? Int == 4 && session["tags"] as? [String] == ["live"])
            #expect(try Self.content(of: studio, "log.txt") == "a\nb\n")
            owner?.command.send(SIGTERM)
            _ = await owner?.command.result()
        }
    }

    /// The server receives the first line before the producer writes the second line.
    @Test(arguments: [false, true]) func sendsBytesWhileTheyAreProduced(hasOwner: Bool) async throws {
        let program = try TransferQ()
        let arrivalFile = program.folder.path.appending("arrived").string
        let server = try ScriptedServer { _, _ in
            [.read(6), .call { _ = FileManager.default.createFile(atPath: arrivalFile, contents: nil) }, .answer(201)]
        }
        defer { server.stop() }
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        let owner = hasOwner ? try RunningQueue(program, "--forever") : nil
        try await owner?.event("queueStarted")
        let result = try await Self.shell(
            #"(echo first; while ! [ -e arrived ]; do sleep 0.05; done; echo second) | "$0" stream bucket log.txt"#, program
        ).result()
        #expect(result.status == 0, "\(result.testDescription)")
        let request = try #require(server.requests.first)
        #expect(request.isChunked && request.body == Array("first\nsecond\n".utf8) && request.path == "/in/log.txt")
        owner?.command.send(SIGTERM)
        _ = await owner?.command.result()
    }

    /// The server rejects a body without a length. The queue reports this before the producer ends.
    @Test func reportsThatServerRequiresLength() async throws {
        let program = try TransferQ()
        let server = try ScriptedServer { request, _ in
            guard request.isChunked else { return [.answer(201)] }
            return [.raw("HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\n\r\n"), .close]
        }
        defer { server.stop() }
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        let owner = try RunningQueue(program, "--forever")
        try await owner.event("queueStarted")
        let sender = try Self.shell(
            #"(echo first; while ! [ -e reported ]; do sleep 0.05; done; echo second) | "$0" stream bucket log.txt"#, program)
        let event = try await owner.event("streamDelayed")
        #expect(event["position"] as? Int == 0)
        #expect(FileManager.default.createFile(atPath: program.folder.path.appending("reported").string, contents: nil))
        let result = await sender.result()
        #expect(result.status == 0, "\(result.testDescription)")
        let request = try #require(server.requests.last)
        #expect(!request.isChunked && request.body == Array("first\nsecond\n".utf8))
        owner.command.send(SIGTERM)
        _ = await owner.command.result()
    }

    @Test(arguments: [false, true]) func sendsOverSFTP(hasOwner: Bool) async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        var program = try TransferQ()
        program.environment = ["SSH_AUTH_SOCK": ""]
        let folder = FilePath(server.folder.path).appending("files")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        try await program.succeed(
            "account", "add", "archive", "sftp://\(server.user)@127.0.0.1:\(server.port)\(folder.string)/", "--identity", server.userKey,
            "--known-hosts", "hosts", "--host-key", "accept-new")
        let owner = hasOwner ? try RunningQueue(program, "--forever") : nil
        try await owner?.event("queueStarted")
        let result = try await program.run("stream", "archive", "numbers", "--command", "seq 1 100000")
        #expect(result.status == 0, "\(result.testDescription)")
        let numbers = try String(contentsOfFile: folder.appending("numbers").string, encoding: .utf8)
        #expect(numbers.hasPrefix("1\n2\n") && numbers.hasSuffix("\n100000\n") && numbers.utf8.count == 588_895)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.string) == ["numbers"])
        // The producer waits until the part file on the server has the first line.
        let live = try await Self.shell(
            #"(echo first; until grep -qs first '\#(folder.string)'/.[!.]*; do sleep 0.05; done; echo second) | "$0" stream archive live"#,
            program
        ).result()
        #expect(live.status == 0, "\(live.testDescription)")
        #expect(try String(contentsOfFile: folder.appending("live").string, encoding: .utf8) == "first\nsecond\n")
        let refused = try await program.run("stream", "archive", "numbers", "--command", "echo new")
        #expect(refused.status == 1 && refused.diagnostics.contains("already exists"), "\(refused.testDescription)")
        let replaced = try await program.run("stream", "archive", "numbers", "--command", "echo new", "--overwrite", "always")
        #expect(replaced.status == 0, "\(replaced.testDescription)")
        #expect(try String(contentsOfFile: folder.appending("numbers").string, encoding: .utf8) == "new\n")
        owner?.command.send(SIGTERM)
        _ = await owner?.command.result()
    }

    @Test(
        arguments: [
            ("echo a; exit 3", "The command exited with status 3"), ("echo a; kill -9 $$", "The command was ended by signal 9"),
            ("echo a; kill -PIPE $$", "The command was ended by signal 13"),
        ],
        [false, true])
    func failedCommandFailsSession(command: (text: String, error: String), hasOwner: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let owner = hasOwner ? try RunningQueue(program, "--forever") : nil
            try await owner?.event("queueStarted")
            let result = try await program.run("stream", "studio", "dump.sql", "--command", command.text)
            #expect(result.status == 1 && result.diagnostics.contains(command.error), "\(result.testDescription)")
            let session = try await studio.session(try #require(result.lines.first))
            #expect(session["state"] as? String == "failed")
            let error = try #require(session["error"] as? [String: Any])
            #expect((error["message"] as? String)?.contains(command.error.lowercased()) == true)
            #expect(try Self.content(of: studio, "dump.sql") == nil)
            owner?.command.send(SIGTERM)
            _ = await owner?.command.result()
        }
    }

    /// A failed stream can't be retried, so no command suggests a retry.
    @Test(arguments: ["echo a; exit 3", "head -c 3000000 /dev/zero; exit 3"]) func reportsErrorOnce(command: String) async throws {
        try await LoopbackStudio.with { studio in
            let result = try await studio.program.run("stream", "studio", "dump.sql", "--command", command)
            #expect(result.diagnostics == "transferq: The command exited with status 3, so its output may be incomplete.\n")
            let shown = try await studio.program.succeed("show", try #require(result.lines.first))
            #expect(shown.output.contains("exited with status 3") && !shown.output.contains("transferq retry"), "\(shown.testDescription)")
        }
    }

    @Test func reportsRejectedStreamOnce() async throws {
        let program = try TransferQ()
        let server = try ScriptedServer { _, _ in [.answer(413)] }
        defer { server.stop() }
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        let result = try await program.run("stream", "bucket", "log.txt", "--command", "echo a")
        #expect(result.status == 1 && result.diagnostics.hasPrefix("transferq: The session did not complete. "))
        #expect(result.diagnostics.split(separator: "\n").count == 1, "\(result.testDescription)")
    }

    /// While the session waits, the producer can't continue, so the command prints the reason.
    @Test(arguments: [false, true]) func reportsWhyStreamWaits(hasOwner: Bool) async throws {
        let program = try TransferQ()
        let port = try ReservedPort()
        try await program.succeed("account", "add", "down", "http+put://127.0.0.1:\(port.port)/in/")
        let owner = hasOwner ? try RunningQueue(program, "--forever") : nil
        try await owner?.event("queueStarted")
        let sender = try Self.shell(#"exec "$0" stream down log.txt --command 'echo a; exec sleep 1000' 2>&1"#, program)
        var waits: String?
        for await line in sender.lines where line.contains("Waiting.") {
            waits = line
            break
        }
        #expect(waits?.contains("Cannot reach http://127.0.0.1:\(port.port)") == true, "\(waits ?? "")")
        sender.send(SIGINT)
        #expect(await sender.result().status == 130)
        owner?.command.send(SIGTERM)
        _ = await owner?.command.result()
    }

    /// Calls `body` with an owner, a command that sends an endless stream to this owner, and the session's ID, once the server has received
    /// bytes.
    private static func withEndlessStream(
        _ body: (RunningQueue, RunningCommand, String) async throws -> Void
    ) async throws {
        try await LoopbackStudio.with { studio in
            let owner = try RunningQueue(studio.program, "--forever")
            try await owner.event("queueStarted")
            let sender = try studio.program.start(
                ["stream", "studio", "log.txt", "--command", "while echo a; do sleep 0.1; done"])
            var lines = sender.lines.makeAsyncIterator()
            let id = try #require(await lines.next())
            try await owner.progress(of: id)
            try await body(owner, sender, id)
            #expect(try content(of: studio, "log.txt") == nil)
        }
    }

    @Test func killedSenderFailsSession() async throws {
        try await Self.withEndlessStream { owner, sender, id in
            sender.send(SIGKILL)
            try await owner.event("failed", of: id)
            owner.command.send(SIGTERM)
            _ = await owner.command.result()
        }
    }

    @Test func killedOwnerEndsSender() async throws {
        try await Self.withEndlessStream { owner, sender, _ in
            owner.command.send(SIGKILL)
            let result = await sender.result()
            #expect(result.status == 3 && result.diagnostics.contains("the stream is incomplete"), "\(result.testDescription)")
            _ = await owner.command.result()
        }
    }

    @Test(arguments: [false, true]) func interruptionCancelsSession(hasOwner: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let owner = hasOwner ? try RunningQueue(studio.program, "--forever") : nil
            try await owner?.event("queueStarted")
            let sender = try studio.program.start(["stream", "studio", "log.txt", "--command", "echo a; exec sleep 1000"])
            var lines = sender.lines.makeAsyncIterator()
            let id = try #require(await lines.next())
            sender.send(SIGINT)
            #expect(await sender.result().status == 130)
            owner?.command.send(SIGTERM)
            _ = await owner?.command.result()
            #expect(["cancelled", "failed"].contains(try await studio.session(id)["state"] as? String))
            #expect(try Self.content(of: studio, "log.txt") == nil)
        }
    }

    @Test(arguments: [false, true]) func endsWithSession(hasOwner: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let owner = hasOwner ? try RunningQueue(studio.program, "--forever") : nil
            try await owner?.event("queueStarted")
            let sender = try studio.program.start(["stream", "studio", "log.txt", "--command", "while echo a; do sleep 0.1; done"])
            var lines = sender.lines.makeAsyncIterator()
            let id = try #require(await lines.next())
            try await studio.program.succeed("cancel", id)
            let result = await sender.result()
            #expect(result.status == 1 && result.diagnostics.contains("cancelled"), "\(result.testDescription)")
            owner?.command.send(SIGTERM)
            _ = await owner?.command.result()
        }
    }

    @Test func failsAtDeadline() async throws {
        try await LoopbackStudio.with { studio in
            let result = try await studio.program.run(
                "stream", "studio", "log.txt", "--deadline", "1", "--command", "while echo a; do sleep 0.1; done")
            #expect(result.status == 1 && result.diagnostics.contains("deadline of 1.0 s"), "\(result.testDescription)")
        }
    }

    /// A server that knows the length considers the file complete when the last byte arrives. The queue must not send this byte if the
    /// command fails.
    @Test func failedCommandWithLengthLeavesNoCompleteFile() async throws {
        try await LoopbackStudio.with { studio in
            let bytes = "head -c 3000000 /dev/zero"
            // The command fails once the server has received bytes.
            let received = "find '\(studio.program.folder.path.appending("server").string)' -name '*.bin' -size +0"
            let wait = "until [ -n \"$(\(received))\" ]; do sleep 0.05; done"
            let result = try await studio.program.run(
                "stream", "studio", "dump", "--length", "3000000", "--command", "\(bytes); \(wait); exit 3")
            #expect(result.status == 1, "\(result.testDescription)")
            let dump = try #require(studio.server.statistics.uploads.first { $0.filename == "dump" })
            #expect(!dump.isComplete && dump.offset > 0)
            let complete = try await studio.program.run("stream", "studio", "whole", "--length", "3000000", "--command", bytes)
            #expect(complete.status == 0, "\(complete.testDescription)")
            #expect(studio.server.statistics.uploads.contains { $0.filename == "whole" && $0.isComplete && $0.offset == 3_000_000 })
        }
    }

    /// The first command runs the queue for the second one, whose stream is longer.
    @Test func ownerWaitsForOtherStreams() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try await program.succeed("queue", "set", "--max-sessions", "2")
            let first = try program.start(["stream", "studio", "first", "--command", "echo a; while ! [ -e go ]; do sleep 0.05; done"])
            var lines = first.lines.makeAsyncIterator()
            let id = try #require(await lines.next())
            let second = try program.start(["stream", "studio", "second", "--command", "echo b; while ! [ -e end ]; do sleep 0.05; done"])
            var others = second.lines.makeAsyncIterator()
            _ = try #require(await others.next())
            try program.folder.file("go", size: 0)
            let watch = try program.start(["watch", "--json"])
            for await line in watch.lines {
                let event = try CommandResult.object(line)
                if event["event"] as? String == "completed", event["id"] as? String == id { break }
            }
            try program.folder.file("end", size: 0)
            let result = await second.result()
            #expect(result.status == 0, "\(result.testDescription)")
            #expect(await first.result().status == 0)
            _ = await watch.result()
            #expect(try Self.content(of: studio, "second") == "b\n")
        }
    }

    @Test func rejectsInvalidArguments() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            for (arguments, status, words) in [
                (["nobody", "x"], Int32(4), "no account named"),
                (["studio", "../x"], 2, ".."),
                (["studio", "x", "--checksum", "md5:00"], 2, "Unknown option '--checksum'"),
                (["studio", "x", "--settings-file", "-"], 2, "Standard input can be read only once"),
                (["studio", "x", "--length", "5"], 1, "declared length"),
                (["studio", "x", "--command", ""], 2, "--command is empty"),
                (["studio", "x", "--overwrite", "maybe"], 2, "--overwrite takes one of"),
                (["studio", "x", "--overwrite", "skip"], 2, "does not apply to uploads"),
            ] {
                let result = try await program.run(["stream"] + arguments, input: Array("abc".utf8))
                #expect(result.status == status && result.diagnostics.contains(words), "\(result.testDescription)")
            }
        }
    }
}
