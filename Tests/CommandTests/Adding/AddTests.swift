import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore

@Suite struct AddTests {
    private func program() async throws -> TransferQ {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/files/")
        return program
    }

    private func items(_ program: TransferQ, _ id: String) async throws -> [[String: Any]] {
        let shown = try #require(try await program.succeed("show", id, "--json").objects().first)
        return try #require(shown["items"] as? [[String: Any]])
    }

    @Test func addsOneSessionForSeveralFiles() async throws {
        let program = try await program()
        for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 10) }
        let added = try await program.succeed(
            "add", "studio", "c", "a", "b", "--name", "Day one", "--tag", "x", "--tag", "y", "--context", "{\n\"n\": [1, \"ü\"]}",
            "--metadata", "k=v=w")
        #expect(added.lines.count == 1)
        let listed = try await program.succeed("list", "--json")
        let session = try #require(try listed.objects().first)
        #expect(listed.lines.count == 1)
        #expect(Set(session.keys) == SessionSchema.session)
        #expect(session["id"] as? String == added.lines[0])
        #expect(session["name"] as? String == "Day one")
        #expect(session["state"] as? String == "waiting")
        #expect(session["tags"] as? [String] == ["x", "y"])
        #expect((session["context"] as? [String: [Any]])?["n"]?.last as? String == "ü")
        #expect(session["files"] as? Int == 3)
        #expect(session["bytesTotal"] as? Int == 30)
        #expect(session["rate"] is NSNull && session["error"] is NSNull && session["startedAt"] is NSNull)
        let created = try #require(session["createdAt"] as? String)
        #expect(try Date(created, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)) <= Date())

        let shown = try #require(try await program.succeed("show", added.lines[0], "--json").objects().first)
        #expect(Set(shown.keys) == SessionSchema.shown)
        let items = try #require(shown["items"] as? [[String: Any]])
        #expect(items.allSatisfy { Set($0.keys) == SessionSchema.item })
        #expect(items.map { $0["destination"] as? String } == ["c", "a", "b"])
        #expect(items[0]["source"] as? String == program.folder.path.appending("c").string)
        #expect(items.allSatisfy { $0["state"] as? String == "pending" && $0["bytesTotal"] as? Int == 10 })
    }

    @Test func addsOneSessionPerFile() async throws {
        let program = try await program()
        for name: String in ["a", "b"] { try program.folder.file(name, size: 1) }
        let added = try await program.succeed("add", "studio", "b", "a", "--each", "--json")
        let ids = try added.objects().map { try #require($0["id"] as? String) }
        let sessions = try await program.succeed("list", "--json").objects()
        #expect(sessions.map { $0["name"] as? String } == ["b", "a"])
        #expect(sessions.map { $0["id"] as? String } == ids)
        #expect(sessions.map { $0["index"] as? Int } == [0, 1])
    }

    @Test(arguments: [
        (["a"], "x", ["x/a"]), (["a"], "x/y", ["x/y/a"]), (["a"], "x/", ["x/a"]), (["a", "b"], "x", ["x/a", "x/b"]),
    ])
    func appendsFileNamesToRemoteFolder(files: [String], to: String, expected: [String]) async throws {
        let program = try await program()
        for name: String in ["a", "b"] { try program.folder.file(name, size: 1) }
        let added = try await program.succeed(files: files, to: to)
        #expect(try await items(program, added.lines[0]).map { $0["destination"] as? String } == expected)
    }

    @Test(arguments: ["../x", "/x", "x/../../y", "", "x//y"])
    func rejectsInvalidRemoteFolders(to: String) async throws {
        let program = try await program()
        try program.folder.file("a", size: 1)
        let result = try await program.run("add", "studio", "a", "--to", to)
        #expect(result.status == 2)
        #expect(try await program.succeed("list", "--json").output == "")
    }

    /// Also checks that `--item-progress` adds the event `itemStarted`.
    @Test func sendsCopyOfDeletedFile() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let path = try program.folder.file("a", size: 1_000).string
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            try await program.succeed("add", "studio", "a", "--copy", "--item-progress")
            try FileManager.default.removeItem(atPath: path)
            let events = try await program.succeed("run", "--progress", "json").objects()
            let stored = try #require(studio.server.storedFiles(named: "a").first)
            #expect(try Data(contentsOf: URL(fileURLWithPath: stored.string)) == content)
            #expect(events.contains { $0["event"] as? String == "itemStarted" && $0["position"] as? Int == 0 })
        }
    }

    @Test func reportsAllUnreadablePaths() async throws {
        let program = try await program()
        try program.folder.file("good", size: 1)
        let result = try await program.run("add", "studio", "good", "missing", "/dev/null", "missing too")
        #expect(result.status == 2)
        let folder = program.folder.path.string
        #expect(result.diagnostics.contains("missing does not exist"))
        #expect(result.diagnostics.contains("missing too does not exist"))
        #expect(result.diagnostics.contains("/dev/null is a device"))
        #expect(!result.diagnostics.contains("\(folder)/good"))
        #expect(try await program.succeed("list", "--json").output == "")
    }

    @Test func rejectsUnknownAccount() async throws {
        let program = try await program()
        try program.folder.file("a", size: 1)
        let result = try await program.run("add", "nobody", "a")
        #expect(result.status == 4)
        #expect(result.diagnostics.contains("\"nobody\""))
    }

    @Test(arguments: [
        ["--chunk", "0"], ["--chunk", "x"], ["--overwrite", "odd", "--download"], ["--at", "x"],
        ["--next", "--now"], ["--copy", "--download"],
        ["--next", "--at", "0"],
        ["--hold", "--now"], ["--now", "--after", "x"], ["--dedupe", "k", "--each"], ["--dedupe-completed"], ["--not-before", "25:00"],
        ["--not-before", "2025-02-30"], ["--not-before", "2025-06-01T12:00+25:00"], ["--not-before", "+5y"], ["--rate", "fast"],
        ["--rate", "-1"], ["--rate", "1e3"], ["--rate", "99999999999T"], ["--verify", "odd"], ["--parallel", "0"], ["--parallel", "65"],
        ["--stall-timeout", "0"], ["--stall-timeout", "soon"], ["--response-timeout", "-1"], ["--response-timeout", "86401"],
        ["--give-up-after", "-1"], ["--give-up-after", "soon"], ["--give-up-after", "31622401"],
        ["--context", "{\"a\""], ["--metadata", "novalue"], ["--unknown"], ["--name", ""],
    ])
    func rejectsInvalidOptions(options: [String]) async throws {
        let program = try await program()
        try program.folder.file("a", size: 1)
        let result = try await program.run(["add", "studio", "a"] + options)
        #expect(result.status == 2)
        #expect(result.diagnostics.contains(options[0]), "\(result.diagnostics)")
        #expect(try await program.succeed("list", "--json").output == "")
    }

    @Test func readsPathsFromStandardInput() async throws {
        let program = try await program()
        try program.folder.file("a\nb", size: 1)
        try program.folder.file("c", size: 2)
        let lines = try await program.succeed("add", "studio", "-", input: Array("c\n".utf8))
        #expect(try await items(program, lines.lines[0]).count == 1)
        let nul = try await program.succeed("add", "studio", "-", "--each", input: Array("a\nb\0c\0".utf8))
        #expect(nul.lines.count == 2)
        #expect(try await items(program, nul.lines[0]).map { $0["destination"] as? String } == ["a\nb"])
        let option = try await program.succeed("add", "studio", "c", "--stdin", input: Array("a\nb\0".utf8))
        #expect(try await items(program, option.lines[0]).map { $0["destination"] as? String } == ["c", "a\nb"])
        let none = try await program.run("add", "studio", "-")
        #expect(none.status == 2)
        #expect(try await program.run("add", "studio", "-", "--stdin", input: Array("c".utf8)).status == 2)
        #expect(try await program.run("add", "studio").status == 2)
    }

    @Test func acceptsNamesThatAreNotUTF8() async throws {
        let program = try await program()
        let name: [UInt8] = [0x61, 0xFF, 0x62]
        let file = FilePath(bytes: program.folder.path.bytes + [0x2F] + name)
        try FileDescriptor.open(file, .writeOnly, options: .create, permissions: .ownerReadWrite).close()
        let added = try await program.start(TransferQ.executable, [Array("add".utf8), Array("studio".utf8), name]).result()
        #expect(added.status == 0, "\(added.diagnostics)")
        let fromInput = try await program.succeed("add", "studio", "-", input: name)
        for id in added.lines + fromInput.lines {
            let item = try #require(try await items(program, id).first)
            let text = try #require(item["sourceBytes"] as? String)
            let bytes = try #require(Data(base64Encoded: text))
            #expect(bytes.suffix(4) == Data([0x2F] + name))
            #expect(Set(item.keys) == SessionSchema.item.union(["sourceBytes", "destinationBytes"]))
            #expect(item["destinationBytes"] as? String == Data(name).base64EncodedString())
        }
    }
}

extension TransferQ {
    fileprivate func succeed(files: [String], to: String) async throws -> CommandResult {
        let result = try await run(["add", "studio"] + files + ["--to", to])
        try #require(result.status == 0, "\(result.diagnostics)")
        return result
    }
}
