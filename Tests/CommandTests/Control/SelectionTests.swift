import SystemPackage
import Testing

@Suite struct SelectionTests {
    /// Adds seventeen sessions, so that at least two IDs begin with the same hexadecimal digit.
    private func program() async throws -> (TransferQ, ids: [String]) {
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
        let (program, ids) = try await program()
        #expect(try await listed(program) == ids)
        #expect(try await listed(program, "--max", "3") == Array(ids.prefix(3)))
        #expect(try await listed(program, "--max", "0") == [])
        #expect(try await listed(program, "--account", "two") == [ids[16]])
        #expect(try await listed(program, "--state", "waiting", "--state", "failed") == ids)
        #expect(try await listed(program, "--state", "failed") == [])
        #expect(try await program.run("list", "--state", "odd").status == 2)
        #expect(try await program.run("list", "--max", "x").status == 2)
        #expect(try await program.run("list", "--account", "nobody").status == 4)
        let table = try await program.succeed("list")
        #expect(table.lines.count == 18)
        #expect(table.lines[17].contains("16  \(ids[16].prefix(8))  waiting"))
        let none = try await program.succeed("list", "--state", "failed")
        #expect(none.output == "" && none.diagnostics != "")
    }

    @Test func resolvesPrefixesOfIDs() async throws {
        let (program, ids) = try await program()
        let digits = ids.map { String($0.prefix(1)) }
        let shared = try #require(digits.first { digit in digits.count(where: { $0 == digit }) > 1 })
        for command in ["show", "remove"] {
            let ambiguous = try await program.run(command, shared)
            #expect(ambiguous.status == 4)
            for id in ids where id.hasPrefix(shared) { #expect(ambiguous.diagnostics.contains(id)) }
            let unknown = try await program.run(command, "not-an-id")
            #expect(unknown.status == 4)
        }
        let length = (1...36).first { length in ids.count(where: { $0.hasPrefix(ids[3].prefix(length)) }) == 1 } ?? 36
        let shown = try await program.succeed("show", String(ids[3].prefix(length)).uppercased(), "--json")
        #expect(try shown.objects().first?["id"] as? String == ids[3])
        #expect(try await listed(program) == ids)
    }

    @Test func removesSelectedSessions() async throws {
        let (program, ids) = try await program()
        // One of the two sessions does not exist, so neither is removed.
        #expect(try await program.run("remove", ids[0], "ffff").status == 4)
        #expect(try await program.succeed("remove", ids[0], ids[2], ids[0]).lines == [ids[0], ids[2]])
        #expect(try await program.succeed("remove", "--failed").output == "")
        #expect(try await program.succeed("remove", "--account", "one", "--tag", "last").output == "")
        #expect(try await program.run("remove", "--account", "nobody").status == 4)
        #expect(try await program.succeed("remove", "--tag", "last").lines == [ids[16]])
        #expect(try await listed(program) == [ids[1]] + ids[3..<16])
        #expect(try await program.succeed("remove", "--all", "--json").objects().count == 14)
        #expect(try await listed(program) == [])
    }

    @Test(arguments: [[], ["--all", "--failed"], ["abc", "--all"], ["abc", "--tag", "x"]])
    func rejectsInvalidSelections(arguments: [String]) async throws {
        let program = try TransferQ()
        #expect(try await program.run(["remove"] + arguments).status == 2)
    }
}
