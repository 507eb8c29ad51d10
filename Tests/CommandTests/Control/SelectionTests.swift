import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCommands
import TransferCore
import TransferKit

@Suite struct SelectionTests {
    /// Adds sixteen sessions to the account `one`, and a last session to the account `two`.
    private func programWithSessions() async throws -> (TransferQ, ids: [String]) {
        let program = try TransferQ()
        for account in ["one", "two"] { try await program.succeed("account", "add", account, "https://\(account).example/") }
        try program.folder.file("a", size: 1)
        let many = try await program.run(["add", "one"] + Array(repeating: "a", count: 16) + ["--each", "--tag", "many"])
        let last = try await program.succeed("add", "two", "a", "--tag", "last")
        return (program, many.lines + last.lines)
    }

    private func listed(_ program: TransferQ, _ arguments: String...) async throws -> [String] {
        try await program.run(["list", "--json"] + arguments).objects().compactMap { $0["id"] as? String }
    }

    @Test func listShowsOnlyMatchingSessions() async throws {
        let (program, ids) = try await programWithSessions()
        #expect(try await listed(program) == ids)
        #expect(try await listed(program, "--limit", "3") == Array(ids.prefix(3)))
        #expect(try await listed(program, "--max", "0") == [])
        #expect(try await listed(program, "--tag", "last") == [ids[16]])
        #expect(try await listed(program, "--tag", "many", "--limit", "2") == Array(ids.prefix(2)))
        #expect(try await listed(program, "--failed", "--completed") == [])
        #expect(try await listed(program, "--failed", "--state", "waiting") == ids)
        #expect(try await listed(program, "--account", "two") == [ids[16]])
        #expect(try await listed(program, "--state", "waiting", "--state", "failed") == ids)
        #expect(try await listed(program, "--state", "failed") == [])
        #expect(try await program.run("list", "--state", "odd").status == 2)
        #expect(try await program.run("list", "--max", "x").status == 2)
        #expect(try await program.run("list", "--account", "other").status == 4)
        let table = try await program.succeed("list")
        #expect(table.lines.count == 18)
        #expect(table.lines[17].contains("16  \(ids[16].prefix(8))  waiting"))
        #expect(table.lines[0].hasSuffix("REASON"))
        let none = try await program.succeed("list", "--state", "failed")
        #expect(none.output == "" && none.diagnostics != "")
    }

    @Test(arguments: [40, 60, 200] as [UInt16]) func listFitsIntoTerminal(columns: UInt16) async throws {
        let (program, ids) = try await programWithSessions()
        try await program.succeed("set", "#0", "--name", String(repeating: "long name ", count: 9))
        let terminal = try PseudoTerminal(columns: columns)
        #expect(try await program.start(["list"], output: terminal.terminal).result().status == 0)
        let lines = try await terminal.finish().split(whereSeparator: \.isNewline)
        #expect(lines.count == ids.count + 1 && lines.allSatisfy { $0.count <= Int(columns) }, "\(lines)")
        #expect(lines[0].contains("ACCOUNT") == (columns == 200), "\(lines)")
    }

    /// Without a terminal, the list contains the whole message. On a terminal, the list omits the start of the message, which names the
    /// server.
    @Test(arguments: [80, 100] as [UInt16]) func listShowsReasonOfFailure(columns: UInt16) async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            let program = studio.program
            try program.folder.file("large", size: 6)
            try await program.succeed("add", "studio", "large")
            #expect(try await program.run("run", "--progress", "none").status == 1)
            let message = try #require(try await program.succeed("list").lines.last)
            #expect(message.contains("The server http://127.0.0.1:") && message.hasSuffix("."), "\(message)")
            let terminal = try PseudoTerminal(columns: columns)
            #expect(try await program.start(["list"], output: terminal.terminal).result().status == 0)
            let shown = try #require(try await terminal.finish().split(whereSeparator: \.isNewline).last)
            #expect(!shown.contains("The server") && shown.contains("accepts files of up to 5 bytes"), "\(shown)")
        }
    }

    @Test func resolvesPrefixesOfIDs() async throws {
        let (program, ids) = try await programWithSessions()
        let similar = try ["1", "2"].map { try #require(SessionID("00ab0000-0000-4000-8000-00000000000\($0)")) }
        try await add(similar, to: program)
        for command in ["show", "remove"] {
            let ambiguous = try await program.run(command, "00AB")
            #expect(ambiguous.status == 4)
            for id in similar { #expect(ambiguous.diagnostics.contains("\(id)")) }
            let unknown = try await program.run(command, "not-an-id")
            #expect(unknown.status == 4)
            #expect(unknown.diagnostics.hasSuffix("There is no session \"not-an-id\". To list sessions: transferq list\n"))
        }
        try await program.succeed("remove", "#17", "#18")
        let length = (4...36).first { length in ids.count(where: { $0.hasPrefix(ids[3].prefix(length)) }) == 1 } ?? 36
        let shown = try await program.succeed("show", String(ids[3].prefix(length)).uppercased(), "--json")
        #expect(try shown.objects().first?["id"] as? String == ids[3])
        #expect(try await listed(program) == ids)
    }

    /// The error for an unknown ID suggests similar IDs, shortened to the fewest groups of digits that distinguish these IDs.
    @Test(arguments: [
        (["00ab0000-0000-4000-8000-000000000001", "00ab1000-0000-4000-8000-000000000001"], ["00ab0000", "00ab1000"]),
        (["00ab0000-0000-4000-8000-000000000001", "00ab0000-0001-4000-8000-000000000001"], ["00ab0000-0000", "00ab0000-0001"]),
        (
            ["00ab0000-0000-4000-8000-000000000001", "00ab0000-0000-4000-8000-000000000002"],
            ["00ab0000-0000-4000-8000-000000000001", "00ab0000-0000-4000-8000-000000000002"]
        ),
    ]) func suggestsSimilarIDs(ids: [String], shown: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "one", "https://one.example/")
        try program.folder.file("a", size: 1)
        try await add(ids.compactMap { SessionID($0) }, to: program)
        let near = try await program.run("show", "00abc")
        let end = "Did you mean \(shown[0]) or \(shown[1])? To list sessions: transferq list\n"
        #expect(near.status == 4 && near.diagnostics.hasSuffix(end), "\(near.diagnostics)")
    }

    /// A number that is not an ID may be intended as an index.
    @Test func explainsIndexForNumber() async throws {
        let program = try TransferQ()
        let refused = try await program.run("cancel", "12345")
        let end = "For the session at index 12345, write '#12345'. To list sessions: transferq list\n"
        #expect(refused.status == 4 && refused.diagnostics.hasSuffix(end), "\(refused.diagnostics)")
    }

    private func add(_ ids: [SessionID], to program: TransferQ) async throws {
        let queue = try await TransferQueue(
            storage: .folder(program.store), transports: RegisteredTransports.builtIn.all.map(\.transport))
        for id in ids {
            var request = try SessionRequest.upload([program.folder.path.appending("a")], to: "one")
            request.id = id
            try await queue.enqueue(request)
        }
        await queue.shutdown()
    }

    @Test func selectsSessionByIndex() async throws {
        let (program, ids) = try await programWithSessions()
        #expect(try await program.succeed("show", "#16", "--json").objects().first?["id"] as? String == ids[16])
        #expect(try await program.succeed("cancel", "#2", "#0").lines == [ids[2], ids[0]])
        for (word, status) in [("#17", 4), ("#-1", 2), ("#", 2), ("#x", 2), ("#\(Int.max)", 4)] as [(String, Int32)] {
            let refused = try await program.run("show", word)
            #expect(refused.status == status && refused.diagnostics.contains("index"), "\(word): \(refused.testDescription)")
        }
    }

    /// A short prefix of an ID is rejected, because a short number may be intended as an index.
    @Test(arguments: ["0", "10", "3f2"]) func rejectsShortPrefix(prefix: String) async throws {
        let (program, ids) = try await programWithSessions()
        let refused = try await program.run("cancel", prefix)
        #expect(refused.status == 2 && refused.diagnostics.contains("too short"), "\(refused.testDescription)")
        #expect(refused.diagnostics.contains("'#\(prefix)'") == (Int(prefix) != nil))
        #expect(try await listed(program, "--state", "waiting") == ids)
    }

    @Test func dryRunChangesNothing() async throws {
        let (program, ids) = try await programWithSessions()
        try await program.succeed("cancel", ids[0])
        #expect(try await program.succeed("cancel", "--all", "--dry-run").lines == Array(ids.dropFirst()))
        #expect(try await program.succeed("remove", "--account", "two", "--dry-run").lines == [ids[16]])
        #expect(try await program.succeed("remove", ids[0], "#3", "--dry-run", "--json").objects().count == 2)
        #expect(try await program.succeed("account", "remove", "two", "--cascade", "--dry-run").lines == [ids[16]])
        #expect(try await program.run("account", "remove", "two", "--dry-run").status == 2)
        // As without --dry-run, the command reports a session that it can't change.
        let refused = try await program.run("cancel", ids[0], ids[1], "--dry-run")
        #expect(refused.status == 4 && refused.lines == [ids[1]], "\(refused.testDescription)")
        let draft = try await program.succeed("add", "two", "a", "--draft").lines[0]
        for id in [ids[0], draft] {
            let (dry, real) = (try await program.run("cancel", id, "--dry-run"), try await program.run("cancel", id))
            #expect(dry.status == 4 && real.status == 4 && dry.output == "", "\(dry.testDescription)")
            #expect(dry.diagnostics == real.diagnostics)
        }
        #expect(try await program.succeed("account", "remove", "two", "--cascade", "--dry-run").lines == [ids[16], draft])
        #expect(try await listed(program, "--state", "waiting") == Array(ids.dropFirst()))
        #expect(try await program.succeed("account", "list").lines.count == 3)
    }

    /// On a terminal, commands that end or remove a group of sessions ask for confirmation.
    @Test(
        arguments: [
            ["remove", "--all"], ["cancel", "--all"], ["account", "remove", "two", "--cascade"], ["remove", "--account", "one"],
            ["remove", "--tag", "many"], ["cancel", "--tag", "many"],
        ], ["yes", "no", ""])
    func asksOnTerminal(command: [String], answer: String) async throws {
        let (program, ids) = try await programWithSessions()
        let words = (["python3", "-c", Self.terminalScript, answer, TransferQ.executable.string] + command).map { Array($0.utf8) }
        let result = await (try program.start("/usr/bin/env", words)).result()
        #expect(result.output.contains("Type yes to continue:"), "\(result.testDescription)")
        #expect(result.status == (answer == "yes" ? 0 : 1), "\(result.testDescription)")
        let isChanged = try await listed(program, "--state", "waiting") != ids
        #expect(isChanged == (answer == "yes"))
    }

    /// A Python program that runs a command on a new terminal, writes a line of input, and prints the command's output.
    private static let terminalScript = """
        import os, pty, sys
        pid, terminal = pty.fork()
        if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
        os.write(terminal, sys.argv[1].encode() + b"\\n")
        try:
            while data := os.read(terminal, 4096): os.write(1, data)
        except OSError: pass
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """

    /// A group with one unfinished session needs no confirmation, like a session that is selected by its ID.
    @Test func doesNotAskAboutSingleSession() async throws {
        let (program, ids) = try await programWithSessions()
        let words = ["python3", "-c", Self.terminalScript, "no", TransferQ.executable.string, "remove", "--tag", "last"]
        let result = await (try program.start("/usr/bin/env", words.map { Array($0.utf8) })).result()
        #expect(result.status == 0 && !result.output.contains("continue"), "\(result.testDescription)")
        #expect(try await listed(program) == Array(ids.dropLast()))
    }

    @Test(
        arguments: [["remove", "--all"], ["cancel", "--all"], ["remove", "--tag", "many"], ["account", "remove", "two", "--cascade"]],
        ["--yes", "-y"])
    func yesSkipsQuestion(command: [String], option: String) async throws {
        let (program, ids) = try await programWithSessions()
        let words = (["python3", "-c", Self.terminalScript, "no", TransferQ.executable.string] + command + [option]).map { Array($0.utf8) }
        let result = await (try program.start("/usr/bin/env", words)).result()
        #expect(result.status == 0 && !result.output.contains("continue"), "\(result.testDescription)")
        #expect(try await listed(program, "--state", "waiting") != ids)
    }

    @Test func removesSelectedSessions() async throws {
        let (program, ids) = try await programWithSessions()
        // No session has the second ID, so the command removes no session.
        #expect(try await program.run("remove", ids[0], "ffffffff-0000-4000-8000-000000000000").status == 4)
        #expect(try await program.succeed("remove", ids[0], ids[2], ids[0]).lines == [ids[0], ids[2]])
        #expect(try await program.succeed("remove", "--failed").output == "")
        #expect(try await program.succeed("remove", "--account", "one", "--tag", "last").output == "")
        #expect(try await program.run("remove", "--account", "other").status == 4)
        #expect(try await program.succeed("remove", "--tag", "last").lines == [ids[16]])
        #expect(try await listed(program) == [ids[1]] + ids[3..<16])
        #expect(try await program.succeed("remove", "--all", "--json").objects().count == 14)
        #expect(try await listed(program) == [])
    }

    @Test func selectsByState() async throws {
        let (program, ids) = try await programWithSessions()
        try await program.succeed("cancel", ids[0], ids[2], ids[16])
        #expect(try await listed(program, "--cancelled") == [ids[0], ids[2], ids[16]])
        #expect(try await program.succeed("retry", "--cancelled", "--tag", "last").lines == [ids[16]])
        // Each state option adds the sessions in its state.
        #expect(try await program.succeed("remove", "--completed", "--cancelled", "--dry-run").lines == [ids[0], ids[2]])
        #expect(try await program.run("remove", "--completed", "--account", "other").status == 4)
        #expect(try await program.succeed("remove", "--cancelled").lines == [ids[0], ids[2]])
        #expect(try await listed(program) == [ids[1]] + ids[3...])
    }

    /// If selectors could be repeated, the argument parser would use only the last value, and the command would select sessions that the
    /// user does not expect.
    @Test(arguments: [
        ["set", "--tag", "many", "--tag=last", "--rate", "1K"], ["list", "--tag", "many", "--tag", "last"],
        ["remove", "--tag", "many", "--tag", "last"], ["hold", "--account", "one", "--account", "two"],
        ["list", "--account=one", "--account", "two"], ["move", "--tag", "many", "--tag", "last", "0"],
    ])
    func rejectsRepeatedSelectors(command: [String]) async throws {
        let (program, ids) = try await programWithSessions()
        let refused = try await program.run(command)
        #expect(refused.status == 2 && refused.diagnostics.contains("can't be repeated"), "\(refused.testDescription)")
        #expect(try await listed(program, "--state", "waiting") == ids)
        try await program.succeed("add", "one", "a", "--tag", "x", "--tag", "y")
    }

    @Test(arguments: [[], ["--all", "--failed"], ["abc", "--all"], ["abc", "--tag", "x"]])
    func rejectsInvalidSelections(arguments: [String]) async throws {
        let program = try TransferQ()
        #expect(try await program.run(["remove"] + arguments).status == 2)
    }
}
