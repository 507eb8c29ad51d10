import Foundation
import SystemPackage
import Testing
import TransferCommands

/// Arguments that are easily misread, such as values with a leading dash, misspelt commands and invalid UTF-8.
@Suite struct ArgumentTests {
    /// File names such as -dash and -h1 contain an h after a dash, but don't request help.
    @Test(arguments: ["-dash", "-h1", "-xyz", "-x=1", "-d", "---x", "-vx"]) func requiresPathForFileNameWithLeadingDash(name: String)
        async throws
    {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file(name, size: 1)
        let refused = try await program.run("add", "studio", name)
        #expect(refused.status == 2 && refused.output == "", "\(refused.testDescription)")
        #expect(
            refused.diagnostics.contains("no option \"\(name)\"") && refused.diagnostics.contains("./\(name)"), "\(refused.diagnostics)")
        let afterFlag = try await program.run("add", "studio", "--each", name)
        #expect(afterFlag.status == 2 && !afterFlag.diagnostics.contains("--each="), "\(afterFlag.diagnostics)")
        try await program.succeed("add", "studio", "./\(name)")
        try await program.succeed("add", "studio", "--", name)
        #expect(try await program.succeed("list", "--json").objects().map { $0["name"] as? String } == [name, name])
    }

    @Test(arguments: [["-h"], ["-vh"], ["-help"], ["add", "-h"], ["help", "queue", "set"], ["help", "help"], ["help"]])
    func printsHelp(arguments: [String]) async throws {
        let help = try await TransferQ().run(arguments)
        #expect(help.status == 0 && help.output.contains("USAGE") && help.diagnostics == "", "\(help.testDescription)")
    }

    @Test func requiresEqualsSignForValueWithLeadingDash() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let refused = try await program.run("add", "studio", "a", "--name", "-dash")
        #expect(refused.status == 2 && refused.diagnostics.contains("--name=-dash"), "\(refused.testDescription)")
        try await program.succeed("add", "studio", "a", "--name=-dash", "--context", "-1")
        let session = try #require(try await program.succeed("list", "--json").objects().first)
        #expect(session["name"] as? String == "-dash" && session["context"] as? Int == -1)
    }

    @Test(arguments: [
        (["add", "studio", "a"], "--at"), (["list"], "--limit"), (["list"], "--max"), (["watch"], "--tail"), (["run"], "--max-sessions"),
        (["run"], "--jobs"), (["agent", "start"], "--max-sessions"),
        (["agent", "run"], "--max-sessions"), (["queue", "set"], "--max-sessions"), (["queue", "set"], "--min-free"),
        (["queue", "set"], "--keep-completed"), (["agent", "start"], "--log-size"), (["run"], "--min-free"),
        (["account", "add", "two", "https://b.example/"], "--rate"),
        (["account", "add", "two", "https://b.example/"], "--max-sessions"), (["add", "studio", "a"], "--parallel"),
        (["add", "studio", "a"], "--chunk"), (["add", "studio", "a"], "--stall-timeout"), (["doctor"], "--timeout"), (["watch"], "--since"),
    ])
    func rejectsNegativeNumbers(command: [String], option: String) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        for words in [["\(option)=-1"], [option, "-1"]] {
            let refused = try await program.run(command + words)
            #expect(refused.status == 2 && refused.output == "", "\(words): \(refused.testDescription)")
            #expect(refused.diagnostics.contains(option) && refused.diagnostics.contains("-1"), "\(refused.diagnostics)")
        }
    }

    @Test(arguments: [
        ("1500", 1_500), ("500K", 512_000), ("500KB", 500_000), ("500kb/s", 500_000), ("1.5MiB", 1_572_864), ("2 M", nil), ("2MX", nil),
        ("MB", nil), ("1e3", nil), ("2M/h", nil), ("0.5", nil), ("9999999T", nil),
    ])
    func readsUnitsOfRates(text: String, rate: Int?) async throws {
        let program = try TransferQ()
        let set = try await program.run("queue", "set", "--rate", text, "--json")
        #expect(set.status == (rate == nil ? 2 : 0), "\(set.testDescription)")
        if let rate { #expect(try set.objects().first?["rateLimit"] as? Int == rate) }
    }

    /// The current time is 2026-11-27 22:30 in Berlin.
    @Test(arguments: [
        ("23:00", 1_795_816_800.0), ("22:30", 1_795_901_400), ("6:05", 1_795_842_300), ("tomorrow", 1_795_820_400),
        ("tomorrow 06:30", 1_795_843_800), ("tomorrowT06:30", 1_795_843_800), ("+5m", 1_795_815_300), ("++5m", nil), ("+-0m", nil),
        ("+m", nil), ("24:00", nil), ("12:60", nil),
        ("tomorrow6:30", nil), ("today", nil), ("", nil),
    ])
    func readsTimesOfDay(text: String, expected: Double?) throws {
        let zone = try #require(TimeZone(identifier: "Europe/Berlin"))
        let time = StartTime(argument: text, now: Date(timeIntervalSince1970: 1_795_815_000), zone: zone)
        #expect(time?.date.timeIntervalSince1970 == expected)
    }

    @Test func printsNoteWithoutOwner() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let added = try await program.succeed("add", "studio", "a")
        #expect(added.lines.count == 1 && added.diagnostics.contains("transferq run"), "\(added.testDescription)")
        #expect(try await program.succeed("add", "studio", "a", "--quiet").diagnostics == "")
        #expect(try await program.run("add", "studio", "a", "-q", "-v").status == 2)
        let run = try RunningQueue(program, "--forever")
        try await run.event("queueStarted")
        #expect(try await program.succeed("add", "studio", "a", "--hold").diagnostics == "")
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
    }

    @Test func rejectsNegativeIndex() async throws {
        for words in [["move", "3f2a", "-1"], ["move", "3f2a", "--", "-1"], ["move", "--all", "-1"]] {
            let refused = try await TransferQ().run(words)
            #expect(refused.status == 2 && refused.diagnostics.contains(words.contains("--") ? "at least 0" : "-1"))
        }
    }

    @Test(arguments: [
        (["help", "nosuch"], "nosuch", "add"), (["help", "quue"], "quue", "\"transferq queue\""), (["lsit"], "lsit", "\"transferq list\""),
        (["account", "ad"], "account ad", "\"transferq account add\""), (["help", "queue", "stat"], "queue stat", "status"),
        (["queue", "help"], "queue help", "transferq help queue"),
    ])
    func suggestsNearestCommand(words: [String], named: String, nearest: String) async throws {
        let refused = try await TransferQ().run(words)
        #expect(refused.status == 2 && refused.output == "", "\(refused.testDescription)")
        #expect(refused.diagnostics.contains("no command \"\(named)\"") && refused.diagnostics.contains(nearest), "\(refused.diagnostics)")
    }

    @Test(arguments: [["--json"], ["--store", "x"], ["--store"], ["-v", "--store=x"]]) func rejectsOptionsWithoutCommand(words: [String])
        async throws
    {
        let refused = try await TransferQ().run(words)
        #expect(refused.status == 2 && refused.diagnostics.contains("\(words[0]) needs a command"), "\(refused.testDescription)")
    }

    @Test(arguments: ["--dedupe", "--tag"]) func rejectsEmptyValues(option: String) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let refused = try await program.run("add", "studio", "a", option, "")
        #expect(refused.status == 2 && refused.diagnostics.contains("\(option) is empty"), "\(refused.testDescription)")
    }

    /// If a user passes a secret where the name of its source belongs, messages don't repeat the secret.
    @Test(arguments: [
        "--token-env", "--token-file", "--password-env", "--passphrase-file", "--proxy-password-env", "--header", "--header-env",
        "--header-file",
    ])
    func hidesSecretsWithLeadingDash(option: String) async throws {
        for secret in ["-s3cret", "-1234"] {
            let refused = try await TransferQ().run("account", "add", "b", "https://b.example/", option, secret)
            #expect(refused.status == 2 && refused.diagnostics.contains("\(option)="), "\(refused.testDescription)")
            #expect(!refused.diagnostics.contains(secret), "\(refused.diagnostics)")
        }
    }

    @Test(arguments: ["--header", "--header-env", "--header-file"]) func rejectsHeadersThatAreNotUTF8(option: String) async throws {
        let program = try TransferQ()
        let words = ["account", "add", "b", "https://b.example/", option].map { Array($0.utf8) } + [Array("X-Key: s3cret".utf8) + [0xE9]]
        let refused = try await program.start(TransferQ.executable, words).result()
        #expect(refused.status == 2 && refused.diagnostics.contains("UTF-8"), "\(refused.testDescription)")
        #expect(refused.diagnostics.contains(option) && !refused.diagnostics.contains("s3cret"), "\(refused.diagnostics)")
        #expect(try await program.succeed("account", "list", "--json").lines == [])
    }

    /// Replacing invalid bytes would store and show different text.
    @Test(arguments: [
        (["account", "add"], ["https://b.example/"]), (["list", "--account"], []), (["add", "studio", "a", "--tag"], []),
        (["add", "studio", "a", "--name"], []), (["add", "studio", "a", "--dedupe"], []), (["set", "--all", "--set-tag"], []),
        (["hold", "--tag"], []), (["account", "add", "b", "sftp://b.example/", "--host-key"], []),
    ])
    func rejectsTextsThatAreNotUTF8(before: [String], after: [String]) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let words = before.map { Array($0.utf8) } + [Array("X: caf".utf8) + [0xE9]] + after.map { Array($0.utf8) }
        let refused = try await program.start(TransferQ.executable, words).result()
        #expect(refused.status == 2, "\(refused.testDescription)")
        #expect(refused.diagnostics.contains("UTF-8") && refused.diagnostics.contains("caf\u{FFFD}"), "\(refused.diagnostics)")
        #expect(try await program.succeed("account", "list", "--json").lines.count == 1)
        #expect(try await program.succeed("list", "--json").lines.isEmpty)
    }
}
