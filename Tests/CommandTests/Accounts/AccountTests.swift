import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct AccountTests {
    @Test func showsAddedAccount() async throws {
        let program = try TransferQ()
        try program.folder.file("authorities.pem", bytes: [])
        try await program.succeed(
            "account", "add", "studio", "tus+https://me@one.example/files/", "http://two.example/files/", "--token-env", "STUDIO_TOKEN",
            "--password-file", "password", "--ca-file", "authorities.pem", "--header", "X-Project: reel", "--header-env", "X-Api-Key: KEY")
        let listed = try await program.succeed("account", "list", "--json")
        let shown = try await program.succeed("account", "show", "studio", "--json")
        #expect(listed.output == shown.output)
        let account = try #require(try shown.objects().first)
        #expect(
            Set(account.keys) == [
                "name", "endpoints", "blocked", "sessions", "maxSessions", "rateLimit", "currentRateLimit", "timetable", "unavailable",
            ])
        #expect(account["name"] as? String == "studio")
        #expect(account["blocked"] is NSNull)
        let endpoints = try #require(account["endpoints"] as? [[String: Any]])
        #expect(endpoints.map { $0["address"] as? String } == ["https://me@one.example/files/", "http://two.example/files/"])
        #expect(endpoints.allSatisfy { $0["transport"] as? String == "tus" })
        let settings = try #require(endpoints[0]["settings"] as? [String: String])
        let folder = program.folder.path.string
        #expect(settings == ["caFile": "\(folder)/authorities.pem", "header.X-Project": "reel"])
        let credentials = try #require(endpoints[0]["credentials"] as? [[String: Any]])
        #expect(credentials.map { $0["kind"] as? String } == ["bearer", "password", "header"])
        #expect(credentials[0]["environment"] as? String == "STUDIO_TOKEN")
        // The account contains the absolute path, because the file is read later, possibly by a process with another working directory.
        #expect(credentials[1]["file"] as? String == "\(folder)/password")
        #expect(credentials[2]["name"] as? String == "X-Api-Key")

        try await program.succeed("account", "remove", "studio")
        #expect(try await program.succeed("account", "list", "--json").output == "")
    }

    @Test func quotesNameForShell() async throws {
        let program = try TransferQ()
        for name in ["day one", "it's"] {
            try await program.succeed("account", "add", name, "https://one.example/files/")
            let refused = try await program.run("account", "add", name, "https://two.example/files/")
            let word = try #require(refused.diagnostics.firstMatch(of: /account edit (.*)\n/)?.1)
            let shell = try program.start("/bin/sh", ["-c", "printf %s \(word)"].map { Array($0.utf8) })
            #expect(await shell.result().output == name, "\(refused.testDescription)")
        }
    }

    /// The scheme `rufh` sets `dialect` to `ietf`, for new and for changed endpoints. The scheme `tus` keeps the setting of an existing endpoint,
    /// and `--setting` replaces it.
    @Test func schemeSelectsProtocol() async throws {
        let program = try TransferQ()
        func settings() async throws -> [[String: String]] {
            let account = try #require(try await program.succeed("account", "show", "studio", "--json").objects().first)
            return try #require(account["endpoints"] as? [[String: Any]]).compactMap { $0["settings"] as? [String: String] }
        }
        try await program.succeed("account", "add", "studio", "rufh+https://one.example/files/", "--setting", "chunkSize=10")
        #expect(try await settings() == [["dialect": "ietf", "chunkSize": "10"]])
        try await program.succeed("account", "edit", "studio", "tus+https://one.example/files/", "rufh+http://two.example/")
        #expect(try await settings() == [["dialect": "ietf", "chunkSize": "10"], ["dialect": "ietf", "chunkSize": "10"]])
        try await program.succeed("account", "edit", "studio", "--setting", "dialect=auto")
        #expect(try await settings() == [["dialect": "auto", "chunkSize": "10"], ["dialect": "auto", "chunkSize": "10"]])
    }

    @Test func rejectsEditWithoutOptions() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/files/")
        let result = try await program.run("account", "edit", "studio")
        #expect(result.status == 2 && result.diagnostics.contains("account unblock 'studio'"), "\(result.testDescription)")
    }

    @Test func appliesOptionsOnlyToEndpointsThatSupportThem() async throws {
        let program = try TransferQ()
        let key = program.folder.path.appending("key").string
        try Data().write(to: URL(fileURLWithPath: key))
        try await program.succeed(
            "account", "add", "studio", "https://me@one.example/files/", "sftp://me@two.example:2222/in/", "--token-env", "TOKEN",
            "--password-env", "PASSWORD", "--identity", key, "--known-hosts", "hosts", "--host-key", "accept-new", "--header", "X-A: 1")
        let account = try #require(try await program.succeed("account", "show", "studio", "--json").objects().first)
        let endpoints = try #require(account["endpoints"] as? [[String: Any]])
        #expect(endpoints.map { $0["transport"] as? String } == ["tus", "sftp"])
        #expect(endpoints[0]["settings"] as? [String: String] == ["header.X-A": "1"])
        #expect(
            endpoints[1]["settings"] as? [String: String] == [
                "identity": key, "knownHosts": program.folder.path.appending("hosts").string, "hostKey": "accept-new",
            ])
        let kinds = endpoints.map { ($0["credentials"] as? [[String: Any]])?.map { $0["kind"] as? String } }
        #expect(kinds == [["bearer", "password"], ["password"]])
    }

    @Test func appliesTransportSettings() async throws {
        let program = try TransferQ()
        for name in ["certificate.pem", "key.pem"] { try program.folder.file(name, bytes: []) }
        try await program.succeed(
            "account", "add", "studio", "https://one.example/files/", "sftp://me@two.example/in/", "--client-certificate",
            "certificate.pem", "--client-key", "key.pem", "--passphrase-env", "PASSPHRASE", "--proxy-password-file", "proxy-password",
            "--setting", "tus:proxy=socks5h://proxy.example:1080", "--setting", "tus:proxyUser=me", "--setting", "tus:httpVersion=2",
            "--setting", "sftp:keepTimes=true", "--setting", "parallelThreshold=1000000")
        func endpoints() async throws -> [[String: Any]] {
            let account = try #require(try await program.succeed("account", "show", "studio", "--json").objects().first)
            return try #require(account["endpoints"] as? [[String: Any]])
        }
        let folder = program.folder.path.string
        let added = try await endpoints()
        #expect(
            added[0]["settings"] as? [String: String] == [
                "clientCertificate": "\(folder)/certificate.pem", "clientKey": "\(folder)/key.pem", "httpVersion": "2",
                "parallelThreshold": "1000000", "proxy": "socks5h://proxy.example:1080", "proxyUser": "me",
            ])
        #expect(added[1]["settings"] as? [String: String] == ["keepTimes": "true", "parallelThreshold": "1000000"])
        let kinds = added.map { ($0["credentials"] as? [[String: Any]])?.map { $0["kind"] as? String } }
        #expect(kinds == [["clientKeyPassphrase", "proxyPassword"], ["keyPassphrase"]])

        try await program.succeed("account", "edit", "studio", "--setting", "httpVersion=", "--setting", "sftp:keepTimes=false")
        let edited = try await endpoints()
        #expect((edited[0]["settings"] as? [String: String])?["httpVersion"] == nil)
        #expect((edited[1]["settings"] as? [String: String])?["keepTimes"] == "false")
    }

    @Test func printsTextOutput() async throws {
        let program = try TransferQ()
        let empty = try await program.succeed("account", "list")
        #expect(empty.output == "" && empty.diagnostics.contains("no accounts"))
        try await program.succeed("account", "add", "studio", "https://one.example/files/", "--token-env", "STUDIO_TOKEN")
        let listed = try await program.succeed("account", "list")
        #expect(listed.lines.count == 2 && listed.lines[1].hasPrefix("studio  ready"))
        let shown = try await program.succeed("account", "show", "studio")
        #expect(shown.output.contains("bearer from the environment variable STUDIO_TOKEN"))
    }

    @Test func rejectsUnknownAccount() async throws {
        let program = try TransferQ()
        for command in ["show", "remove", "unblock"] {
            let result = try await program.run("account", command, "nobody")
            #expect(result.status == 4)
            #expect(result.diagnostics.hasPrefix("transferq: There is no account named \"nobody\"."))
        }
    }

    @Test func rejectsDuplicateName() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let result = try await program.run("account", "add", "studio", "https://two.example/")
        #expect(result.status == 4)
        #expect(try await program.succeed("account", "show", "studio", "--json").output.contains("one.example"))
    }

    @Test func rejectsRemovalOfAccountWithSessions() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("reel", size: 3)
        try await program.succeed("add", "studio", "reel")
        let result = try await program.run("account", "remove", "studio")
        #expect(result.status == 4)
        #expect(result.diagnostics.contains("1 session"))
    }

    @Test func editsAccount() async throws {
        let program = try TransferQ()
        try await program.succeed(
            "account", "add", "studio", "https://one.example/files/", "--token-env", "OLD", "--header", "X-A: 1", "--header", "X-B: 2",
            "--max-sessions", "2", "--rate", "1M")
        #expect(try await account(program)["maxSessions"] as? Int == 2)
        #expect(try await account(program)["rateLimit"] as? Int == 1 << 20)
        let edited = try await program.succeed(
            "account", "edit", "studio", "--token-file", "new", "--header", "x-a: 3", "--header-env", "X-B: SECRET", "--max-sessions", "0",
            "--json")
        let account = try await account(program)
        #expect(try edited.objects().first?["maxSessions"] is NSNull)
        #expect(account["maxSessions"] is NSNull && account["rateLimit"] as? Int == 1 << 20)
        let endpoint = try #require((account["endpoints"] as? [[String: Any]])?.first)
        #expect(endpoint["settings"] as? [String: String] == ["header.x-a": "3"])
        let credentials = try #require(endpoint["credentials"] as? [[String: Any]])
        #expect(credentials.map { $0["kind"] as? String } == ["bearer", "header"])
        #expect(credentials.map { $0["file"] as? String } == [program.folder.path.appending("new").string, nil])

        try await program.succeed("account", "edit", "studio", "http://two.example/", "https://one.example/files/")
        let endpoints = try #require(try await self.account(program)["endpoints"] as? [[String: Any]])
        #expect(endpoints.map { $0["address"] as? String } == ["http://two.example/", "https://one.example/files/"])
        #expect(endpoints.allSatisfy { ($0["credentials"] as? [Any])?.count == 2 })
        #expect(try await program.run("account", "edit", "studio", "--header", "X-Token: hunter2").status == 2)
        #expect(try await program.run("account", "edit", "studio", "--header", "Host: elsewhere").status == 2)
        #expect(try await program.run("account", "edit", "nobody", "--rate", "1").status == 4)
    }

    @Test(arguments: [false, true]) func mergesConcurrentEdits(hasOwner: Bool) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/files/")
        let run = hasOwner ? try RunningQueue(program, "--forever") : nil
        try await run?.event("queueStarted")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                group.addTask { try await program.succeed("account", "edit", "studio", "--header", "X-\(number): 1") }
            }
            try await group.waitForAll()
        }
        let endpoint = try #require((try await account(program)["endpoints"] as? [[String: Any]])?.first)
        #expect((endpoint["settings"] as? [String: String])?.count == 12)
        let statuses = try await withThrowingTaskGroup(of: Int32.self) { group in
            for number in 0..<6 {
                group.addTask { try await program.run("account", "add", "new", "https://\(number).example/").status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.sorted() == [0, 4, 4, 4, 4, 4])
        run?.command.send(SIGTERM)
        _ = await run?.command.result()
    }

    private func account(_ program: TransferQ) async throws -> [String: Any] {
        try #require(try await program.succeed("account", "show", "studio", "--json").objects().first)
    }

    @Test func removesSessionsWithCascade() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("reel", size: 3)
        try await program.succeed("add", "studio", "reel")
        try await program.succeed("account", "remove", "studio", "--cascade")
        #expect(try await program.succeed("list", "--json").output == "")
    }

    @Test func checksEndpoints() async throws {
        try await LoopbackStudio.with { studio in
            let good = try await studio.program.succeed("account", "check", "studio", "--json")
            let finding = try #require(try good.objects().first)
            #expect(finding["version"] as? String == "1.0.0" && finding["address"] as? String == studio.url.absoluteString)
            #expect((finding["features"] as? [String])?.contains("creation") == true && finding["latency"] is Double)
            #expect(try await studio.program.run("account", "check", "nobody").status == 4)
            await studio.server.stop()
            #expect(try await studio.program.run("account", "check", "studio").status == 1)
        }
    }

    @Test(arguments: [
        (["https://user:hunter2@one.example/"], "--password-env"),
        (["sftp://user:hunter2@one.example/"], "--password-env"),
        (["gopher://hunter2.example/"], "tus+https://"),
        (["hunter2"], "https://host/files/"),
        (["https://one.example/#hunter2"], "fragment"),
        (["https://"], "host"),
        (["https://one.example/", "--header", "Authorization: Bearer hunter2"], "--header-env"),
        (["https://one.example/", "--header", "cookie: hunter2"], "--header-env"),
        (["https://one.example/", "--header", "X-API-Key: hunter2"], "--header-env"),
        (["https://one.example/", "--header", "X-Upload-Token: hunter2"], "--header-env"),
        (["https://one.example/", "--header", "X-A: hunter2\r\nX-B: 2"], "control"),
        (["https://one.example/", "--header", "hunter2"], "Name: value"),
        (["https://one.example/", "--token-env", "hunter2 is invalid"], "environment variable"),
        (["https://one.example/", "--token-env", "A", "--token-file", "b"], "can't be used together"),
        (["https://one.example/", "--ca-file", "missing.pem"], "missing.pem"),
        (["https://one.example/", "--rate", "much"], "--rate"),
        (["https://one.example/", "--max-sessions", "many"], "--max-sessions"),
        (["https://one.example/", "--header", "Upload-Offset: 3"], "Upload-Offset"),
        (["https://one.example/", "--header", "host: elsewhere"], "host"),
        (["https://one.example/", "--header-env", "Tus-Resumable: VERSION"], "Tus-Resumable"),
        (["https://one.example/", "--header", "X-A: 1", "--header-env", "x-a: A"], "twice"),
        (["https://one.example/", "--known-hosts", "k"], "--known-hosts"),
        (["sftp://one.example/", "--identity", "k"], "k"),
        (["sftp://one.example/", "--token-env", "TOKEN"], "--token-env"),
        (["sftp://one.example/", "--host-key", "whatever"], "hostKey"),
        (["sftp://one.example/", "--setting", "tus:chunkSize=1"], "tus"),
        (["sftp://one.example/", "--setting", "chunkSize=1"], "chunkSize"),
        (["https://one.example/", "--setting", "chunkSize"], "NAME=VALUE"),
        (["https://one.example/", "--setting", "chunkSize=none"], "chunkSize"),
        (["https://one.example/", "--setting", "caFile=a"], "--ca-file"),
        (["https://one.example/", "--setting", "header.X-Token=hunter2"], "--header"),
        (["https://one.example/", "--setting", "proxyPassword=hunter2"], "proxyPassword"),
        (["https://one.example/", "--setting", "proxy=http://me:hunter2@proxy.example"], "proxy"),
        (["https://one.example/", "--setting", "pinnedPublicKeys=AAAA"], "pinned public key"),
        (["sftp://one.example/", "--client-key", "k"], "--client-key"),
        ([], "endpoint"),
    ])
    func rejectsInvalidArguments(arguments: [String], named: String) async throws {
        let program = try TransferQ()
        let result = try await program.run(["account", "add", "studio"] + arguments)
        #expect(result.status == 2, "\(result.diagnostics)")
        #expect(result.output == "")
        #expect(result.diagnostics.hasPrefix("transferq: "))
        #expect(result.diagnostics.contains(named), "\(result.diagnostics)")
        #expect(!result.diagnostics.contains("hunter2"), "\(result.diagnostics)")
        #expect(try await program.succeed("account", "list", "--json").output == "")
    }

    @Test(arguments: ["--token-file", "--password-file", "--proxy-password-file", "--header-file"])
    func rejectsInvalidSecretFiles(option: String) async throws {
        let program = try TransferQ()
        try program.folder.sparseFile("large", size: 3 << 20)
        try program.folder.sparseFile("secret", size: 100)
        for (file, reason) in [(".", "is a folder"), ("large", "3145728 bytes"), ("secret", nil), ("later", nil)] as [(String, String?)] {
            let word = option == "--header-file" ? "X-Key: \(file)" : file
            let added = try await program.run("account", "add", "name-\(file)", "https://me@one.example/", option, word)
            #expect(added.status == (reason == nil ? 0 : 2), "\(added.testDescription)")
            if let reason { #expect(added.diagnostics.contains(reason) && added.diagnostics.contains(option)) }
        }
    }

    @Test(arguments: ["--identity", "--ca-file", "--client-certificate"]) func rejectsFoldersInsteadOfFiles(option: String) async throws {
        let program = try TransferQ()
        let address = option == "--identity" ? "sftp://me@one.example/" : "https://one.example/"
        let added = try await program.run("account", "add", "studio", address, option, ".")
        #expect(added.status == 2 && added.diagnostics.contains("is a folder"), "\(added.testDescription)")
    }

    /// Without a user in the address, the password would be unused, and each transfer would fail.
    @Test(arguments: ["--password-file", "--password-env"]) func rejectsPasswordWithoutUser(option: String) async throws {
        let program = try TransferQ()
        for address in ["https://one.example/", "https+put://one.example/", "https+form://one.example/"] {
            let added = try await program.run("account", "add", "studio", address, option, "PASSWORD")
            #expect(added.status == 2 && added.diagnostics.contains("https://user@host/"), "\(added.testDescription)")
        }
        // Only the address of the second endpoint has a user, so only that endpoint gets the password.
        try await program.succeed("account", "add", "studio", "https://one.example/", "https://me@two.example/", option, "PASSWORD")
        let account = try #require(try await program.succeed("account", "show", "studio", "--json").objects().first)
        let endpoints = try #require(account["endpoints"] as? [[String: Any]])
        #expect(endpoints.map { ($0["credentials"] as? [[String: Any]])?.count } == [0, 1])
        // The new address has no user.
        let edited = try await program.run("account", "edit", "studio", "https://one.example/", option, "PASSWORD")
        #expect(edited.status == 2, "\(edited.testDescription)")
    }
}
