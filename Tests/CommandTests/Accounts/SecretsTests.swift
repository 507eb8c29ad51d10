import Foundation
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing
import TransferControl
import TransferKit

/// No output, log, process list or file in the storage folder contains a secret.
@Suite(.serialized) struct SecretsTests {
    private static let secrets = [
        "hunter2-token", "hunter2-password", "hunter2-header", "hunter2-file", "hunter2-key", "hunter2-passphrase", "hunter2-proxy",
        PasswordLibrary.password,
    ]

    /// The strings to search for: each secret, in plain text, in Base64, and as credentials in an `Authorization` header (RFC 7617).
    private static let needles =
        secrets + secrets.map { Data("user:\($0)".utf8).base64EncodedString() } + secrets.map { Data($0.utf8).base64EncodedString() }

    @Test func secretsAppearInNoOutputOrFile() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            var program = studio.program
            program.environment = ["TOKEN": Self.secrets[0], "PASSWORD": Self.secrets[1], "KEY": Self.secrets[2]]
            try program.folder.file("token", bytes: Array(Self.secrets[3].utf8))
            try program.folder.file("key", bytes: Array(Self.secrets[4].utf8))
            let url = studio.url.absoluteString
            let login = url.replacing("http://", with: "http://user@")
            var results: [CommandResult] = []
            for account in [
                ["one", url, "--token-env", "TOKEN", "--header-env", "X-Api-Key: KEY"],
                ["two", url, "--token-file", "token", "--header-file", "X-Api-Key: key"],
                ["three", login, "--password-env", "PASSWORD"],
            ] {
                results.append(try await program.run(["account", "add", "--json"] + account))
                try program.folder.file(account[0], size: 1_000)
                results.append(try await program.run("add", account[0], account[0]))
            }
            #expect(results.allSatisfy { $0.status == 0 })
            try program.folder.file("large", size: 1 << 20)
            try await program.succeed("add", "one", "large")
            // The server rejects the first requests, so that the output contains errors.
            studio.server.inject(.answer(status: 401, headers: ["WWW-Authenticate": "Basic"], method: "POST"))
            studio.server.inject(.answer(status: 500, method: "POST"))
            studio.server.inject(.answer(status: 500, method: "PATCH"))

            let run = try program.start(["run", "-vv", "--progress", "json"])
            var processes = ""
            for await _ in run.lines {
                let arguments = try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(run.processID)/cmdline"))
                processes += String(decoding: arguments ?? Data(), as: UTF8.self)
            }
            #expect(processes.contains("--progress"))
            results.append(await run.result())
            for command in [
                ["list"], ["show", "--json"], ["watch"], ["queue", "status"], ["account", "list"], ["account", "show", "one"],
                ["account", "show", "three"], ["account", "check", "one"], ["account", "check", "two"], ["account", "check", "three"],
                ["account", "unblock", "one"], ["doctor"], ["why"], ["run"],
            ] {
                var arguments = command
                if ["show", "why"].contains(command[0]) {
                    arguments.append(try await program.succeed("list", "--json").objects().first?["id"] as? String ?? "")
                }
                for options in [["-vv"], ["-vv", "--json"]] { results.append(try await program.run(arguments + options)) }
            }
            let sent = studio.server.statistics.uploads.count(where: \.isComplete)
            #expect(sent >= 3, "Without these uploads, the program may not have used the secrets.")

            let text = results.map { $0.output + $0.diagnostics }.joined() + processes
            for needle in Self.needles { #expect(!text.contains(needle), "\(needle)") }
            #expect(text.contains("one") && text.contains("TOKEN"))
            for file in try FileManager.default.subpathsOfDirectory(atPath: program.store.string) {
                let bytes = (try? Data(contentsOf: URL(fileURLWithPath: program.store.pushing(FilePath(file)).string))) ?? Data()
                for needle in Self.needles { #expect(bytes.range(of: Data(needle.utf8)) == nil, "\(file) contains \(needle)") }
            }
        }
    }

    /// By default, Swift's crash reports show memory and registers, which may contain secrets.
    @Test(arguments: [["run"], ["account", "check", "one"], ["doctor"]]) func secretsAreExcludedFromCrashReports(command: [String])
        async throws
    {
        // The server never responds, so the signal arrives while the command waits for a response.
        let silent = try SilentServer()
        var program = try TransferQ()
        program.environment = ["TOKEN": Self.secrets[0]]
        try await program.succeed("account", "add", "one", silent.url, "--token-env", "TOKEN")
        try program.folder.file("a", size: 1_000)
        try await program.succeed("add", "one", "a")
        let run = try program.start(command)
        let connection = await silent.connection()
        defer { try? connection.close() }
        run.send(SIGSEGV)
        // Waits for the last line of the report, and then kills the program, which may survive SIGSEGV.
        while !run.diagnostics.contains("Backtrace took") { await Task.yield() }
        run.send(SIGKILL)
        let result = await run.result()
        #expect(!result.diagnostics.contains("Registers:"), "\(result.diagnostics.prefix(2_000))")
        for needle in Self.needles { #expect(!result.diagnostics.contains(needle)) }
    }

    /// Form fields are settings, but their values may be secret.
    @Test func secretsAreExcludedFromShownSettings() async throws {
        let program = try TransferQ()
        try await program.succeed(
            "account", "add", "form", "https+form://one.example/in", "--setting", "field.password=hunter2-password",
            "--setting", "field.x-amz-signature=hunter2-key", "--setting", "field.place=london")
        for options in [[], ["--json"]] {
            let shown = try await program.run(["account", "show", "form"] + options).output
            #expect(shown.contains("field.password") && shown.contains("london") && !shown.contains("hunter2"), "\(shown)")
        }
    }

    /// Uses secrets for SSH and for a proxy, and also checks the agent's log.
    @Test(.timeLimit(.minutes(10))) func secretsAreExcludedFromAgentLog() async throws {
        let server = try await SSHServerProcess.start(options: ["PasswordAuthentication yes"], knowsPasswords: true)
        defer { server.stop() }
        let key = server.folder.appending(path: "secret-key")
        try await SSHServerProcess.runBlocking { try SSHServerProcess.makeKey(at: key, type: .ed25519, passphrase: Self.secrets[5]) }
        try server.authorize(key.path + ".pub")
        var program = try TransferQ()
        program.environment = ["PASSWORD": PasswordLibrary.password, "PROXY": Self.secrets[6], "SSH_AUTH_SOCK": ""]
        try program.folder.file("passphrase", bytes: Array(Self.secrets[5].utf8))
        let address = "sftp://\(server.user)@127.0.0.1:\(server.port)\(server.folder.path)/"
        let trust = ["--known-hosts", "hosts", "--host-key", "accept-new"]
        var results: [CommandResult] = []
        for account in [
            ["word", address, "--password-env", "PASSWORD"] + trust,
            ["key", address, "--identity", key.path, "--passphrase-file", "passphrase"] + trust,
            // No process listens on the discard port of this machine.
            [
                "proxy", "http://127.0.0.1:9/", "--setting", "proxy=http://127.0.0.1:9", "--setting", "proxyUser=me",
                "--proxy-password-env", "PROXY",
            ],
        ] {
            results.append(try await program.run(["account", "add", "--json"] + account))
        }
        #expect(results.allSatisfy { $0.status == 0 }, "\(results)")
        let agent = try await program.succeed("agent", "start", "-v", "--json")
        do {
            let process = try #require(try agent.objects().first?["process"] as? Int)
            for account: String in ["word", "key"] {
                try program.folder.file(account, size: 1_000)
                let id = try await program.succeed("add", account, account).lines[0]
                _ = try await RemoteTransferQueue(folder: program.store, timeout: .seconds(60)).value(of: try #require(SessionID(id)))
            }
            try await program.succeed("add", "proxy", "word")
            for try await event in RemoteTransferQueue(folder: program.store, timeout: .seconds(60)).events(since: 0) {
                if case .attemptFailed = event.kind { break }
            }
            for account: String in ["word", "key", "proxy"] {
                for options in [["-vv"], ["-vv", "--json"]] {
                    results.append(try await program.run(["account", "check", account] + options))
                    results.append(try await program.run(["account", "show", account] + options))
                }
            }
            for command in [["doctor"], ["list"]] {
                results.append(try await program.run(command + ["-vv", "--json"]))
            }
            let arguments = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(process)/cmdline"))
            #expect(Self.needles.allSatisfy { arguments.range(of: Data($0.utf8)) == nil })
        } catch {
            _ = try await program.run("agent", "stop")
            throw error
        }
        try await program.succeed("agent", "stop")
        let text = results.map { $0.output + $0.diagnostics }.joined()
        for needle in Self.needles { #expect(!text.contains(needle), "\(needle)") }
        #expect(text.contains("PASSWORD") && text.contains("SHA256:"))
        let log = try String(contentsOfFile: program.store.appending("agent.log").string, encoding: .utf8)
        #expect(log.contains("A session completed.") && log.contains("An attempt failed: "))
        for file in try FileManager.default.subpathsOfDirectory(atPath: program.store.string) {
            let bytes = (try? Data(contentsOf: URL(fileURLWithPath: program.store.pushing(FilePath(file)).string))) ?? Data()
            for needle in Self.needles { #expect(bytes.range(of: Data(needle.utf8)) == nil, "\(file) contains \(needle)") }
        }
    }
}
