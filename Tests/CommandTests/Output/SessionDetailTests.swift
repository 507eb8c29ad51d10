import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// The details of a session in the output of `show`, `why` and `list`.
@Suite(.serialized) struct SessionDetailTests {
    private func program() async throws -> TransferQ {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        return program
    }

    @Test func showsStartTimeDependencyAndLimits() async throws {
        var program = try await program()
        program.environment["TZ"] = "Etc/GMT-2"
        let first = try await program.succeed("add", "studio", "a").lines[0]
        let added = try await program.succeed(
            "upload", "studio", "a", "--after", first, "--not-before", "2099-07-01T06:30", "--rate", "2M", "--deadline", "90")
        #expect(added.diagnostics.contains("The earliest start is 2099-07-01T06:30:00+0200."), "\(added.diagnostics)")
        let id = added.lines[0]
        let text = try await program.succeed("show", id).output
        for line in [
            "Starts:    2099-07-01T06:30:00+0200, or later", "After:     \(first) has completed", "Max rate:  2.00 MiB/s",
            "Deadline:  1:30 after the first start",
        ] { #expect(text.contains(line + "\n"), "\(text)") }
        let why = try await program.succeed("why", id).output
        #expect(why.contains("2099-07-01T06:30:00+0200") && why.contains("To run it: transferq run"), "\(why)")
        #expect(try await program.succeed("list").output.contains("starts at 2099-07-01T06:30:00+0200"))
        for command in [["show", id], ["list"]] {
            let session = try #require(try await program.succeed(command + ["--json"]).objects().last)
            #expect(session["notBefore"] as? String == "2099-07-01T04:30:00.000Z" && session["after"] as? String == first)
            #expect(session["rateLimit"] as? Int == 2 << 20 && session["deadline"] as? Double == 90)
        }
        try await program.succeed("set", id, "--clear", "not-before", "--clear", "after", "--clear", "deadline", "--rate", "0")
        let cleared = try #require(try await program.succeed("show", id, "--json").objects().first)
        for member in ["notBefore", "after", "rateLimit", "deadline"] { #expect(cleared[member] is NSNull, "\(member)") }
    }

    @Test(.timeLimit(.minutes(10))) func showsSentBytes() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            let (id, run) = try await studio.beginRun()
            let session = try await studio.session(id)
            let item = try #require((session["items"] as? [[String: Any]])?.first)
            let (sent, done) = (item["bytesSent"] as? Int ?? 0, item["bytesDone"] as? Int ?? 0)
            #expect(sent > 0 && sent >= done)
            run.send(SIGTERM)
            _ = await run.result()
        }
    }

    /// The server is slow, so most of the time is spent on content.
    @Test(.timeLimit(.minutes(10))) func showsWhereTimeWent() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            try studio.program.folder.file("slow", size: 3 << 20)
            let id = try await studio.program.succeed("add", "studio", "slow").lines[0]
            let before = try await studio.program.succeed("show", id, "--timing").output
            #expect(before.contains("No attempt has ended"), "\(before)")
            try await studio.program.succeed("run", "--progress", "none")
            let text = try await studio.program.succeed("show", id, "--timing").output
            #expect(text.contains("In the queue: ") && text.contains("connecting"), "\(text)")
            let session = try await studio.session(id)
            let times = try #require(session["times"] as? [String: Any]).compactMapValues { $0 as? Double }
            #expect(times.values.allSatisfy { $0 >= 0 })
            let content = (times["transferring"] ?? 0) + (times["awaitingResponse"] ?? 0)
            #expect(content > (times["connecting"] ?? 0) + (times["storing"] ?? 0), "\(times)")
        }
    }

    /// A Python program that runs a command on a new terminal with the given number of columns, and prints the command's output.
    private static let onTerminal = """
        import fcntl, os, pty, struct, sys, termios, time
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
            os.execv(sys.argv[2], sys.argv[2:])
        try:
            while data := os.read(terminal, 4096): os.write(1, data)
        except OSError: pass
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """

    @Test(arguments: [40, 60, 80, 120, 200]) func fitsListIntoTerminal(columns: Int) async throws {
        let program = try await program()
        let first = try await program.succeed("add", "studio", "a", "--name", String(repeating: "long name ", count: 15)).lines[0]
        try await program.succeed("add", "studio", "a", "--after", first)
        let words = ["python3", "-c", Self.onTerminal, "\(columns)", TransferQ.executable.string, "list"].map { Array($0.utf8) }
        let result = await (try program.start("/usr/bin/env", words)).result()
        let lines = result.output.split(whereSeparator: \.isNewline)
        let rows = lines.filter { !$0.hasPrefix("No process runs this queue.") }
        #expect(lines.count == 4 && rows.count == 3, "\(result.output)")
        #expect(rows.allSatisfy { $0.count <= columns } && rows[0].contains("ID") && rows[0].contains("STATE"), "\(result.output)")
        #expect(rows[0].contains("REASON") == (columns >= 80) && rows[1].contains("long"), "\(result.output)")
        // Without a terminal, `list` prints the whole table, without advice.
        let piped = try await program.succeed("list")
        #expect(piped.output.contains("long name long name long name long name long name long name") && piped.diagnostics == "")
    }
}
