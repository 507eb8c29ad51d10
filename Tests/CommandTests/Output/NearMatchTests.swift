import Testing

@Suite struct NearMatchTests {
    @Test(arguments: [
        ["upload", "studo", "a"], ["list", "--account", "studo"], ["hold", "--account", "studo"], ["account", "show", "studo"],
        ["account", "unblock", "studo"], ["account", "remove", "studo"], ["set", "#0", "--to-account", "studo"],
    ]) func suggestsAccount(command: [String]) async throws {
        let program = try TransferQ()
        try program.folder.file("a", size: 1)
        for name in ["studio", "archive"] { try await program.succeed("account", "add", name, "https://one.example/") }
        try await program.succeed("upload", "studio", "a")
        let refused = try await program.run(command)
        let message = "There is no account named \"studo\". Did you mean \"studio\"? To list accounts: transferq account list\n"
        #expect(refused.status == 4 && refused.diagnostics == "transferq: \(message)", "\(refused.testDescription)")
    }

    /// The beginning of a command is a better match than a command with similar letters, such as `queue start` for `queue stat`.
    @Test(arguments: [("queue stat", "\"transferq queue status\"?"), ("uplod", "\"transferq upload\"?")])
    func suggestsCommand(command: String, suggestion: String) async throws {
        let refused = try await TransferQ().run(command.split(separator: " ").map(String.init))
        #expect(refused.status == 2 && refused.diagnostics.contains("Did you mean \(suggestion)"), "\(refused.testDescription)")
    }

    @Test(arguments: [
        (["account", "add", "studio", "https://one.example/", "--token", "x"], "Did you mean '--token-env' or '--token-file'?"),
        (["queue", "set", "--jobs", "2"], "Did you mean '--max-sessions'?"),
        (["queue", "set", "--concurrency", "2"], "Did you mean '--max-sessions'?"),
        (["run", "--concurrency", "2"], "Did you mean '--max-sessions'?"), (["list", "--limt", "2"], "Did you mean '--limit'?"),
        (["list", "--xyzzy"], "Unknown option '--xyzzy'.\n"),
    ]) func suggestsOption(command: [String], suggestion: String) async throws {
        let refused = try await TransferQ().run(command)
        #expect(refused.status == 2 && refused.diagnostics.contains(suggestion), "\(refused.testDescription)")
    }
}
