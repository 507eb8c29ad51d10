import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// A secret is in no output, no log, no list of processes, and no file of the store.
@Suite(.serialized) struct SecretsTests {
    private static let words = ["hunter2-token", "hunter2-password", "hunter2-header", "hunter2-file", "hunter2-key"]

    /// What must not be found: each secret, and the form that it has in an `Authorization` header (RFC 7617).
    private static let needles =
        words + words.map { Data("user:\($0)".utf8).base64EncodedString() } + words.map { Data($0.utf8).base64EncodedString() }

    @Test func areNowhere() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            var program = studio.program
            program.environment = ["TOKEN": Self.words[0], "PASSWORD": Self.words[1], "KEY": Self.words[2]]
            try program.folder.file("token", bytes: Array(Self.words[3].utf8))
            try program.folder.file("key", bytes: Array(Self.words[4].utf8))
            let url = studio.url.absoluteString
            let login = url.replacing("http://", with: "http://user@")
            var seen: [CommandResult] = []
            for account in [
                ["one", url, "--token-env", "TOKEN", "--header-env", "X-Api-Key: KEY"],
                ["two", url, "--token-file", "token", "--header-file", "X-Api-Key: key"],
                ["three", login, "--password-env", "PASSWORD"],
            ] {
                seen.append(try await program.run(["account", "add", "--json"] + account))
                try program.folder.file(account[0], size: 1_000)
                seen.append(try await program.run("add", account[0], account[0]))
            }
            #expect(seen.allSatisfy { $0.status == 0 })
            try program.folder.file("large", size: 1 << 20)
            try await program.succeed("add", "one", "large")
            // A server that gets all of it wrong, so that there is something to complain about.
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
            seen.append(await run.result())
            for command in [
                ["list"], ["show", "--json"], ["watch"], ["queue", "status"], ["account", "list"], ["account", "show", "one"],
                ["account", "show", "three"], ["account", "check", "one"], ["account", "check", "two"], ["account", "check", "three"],
                ["account", "unblock", "one"], ["doctor"], ["why"], ["run"],
            ] {
                var arguments = command
                if ["show", "why"].contains(command[0]) {
                    arguments.append(try await program.succeed("list", "--json").objects().first?["id"] as? String ?? "")
                }
                for form in [["-vv"], ["-vv", "--json"]] { seen.append(try await program.run(arguments + form)) }
            }
            let sent = studio.server.statistics.uploads.count(where: \.isComplete)
            #expect(sent >= 3, "The secrets were used.")

            let text = seen.map { $0.output + $0.diagnostics }.joined() + processes
            for needle in Self.needles { #expect(!text.contains(needle), "\(needle)") }
            #expect(text.contains("one") && text.contains("TOKEN"))
            for file in try FileManager.default.subpathsOfDirectory(atPath: program.store.string) {
                let bytes = (try? Data(contentsOf: URL(fileURLWithPath: program.store.pushing(FilePath(file)).string))) ?? Data()
                for needle in Self.needles { #expect(bytes.range(of: Data(needle.utf8)) == nil, "\(file) has \(needle)") }
            }
        }
    }
}
