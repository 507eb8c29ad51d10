import Testing

@Suite(.serialized) struct HelpTests {
    static let commands = [
        "add", "run", "list", "show", "why", "watch", "now", "next", "move", "pause", "resume", "hold", "release", "stop", "cancel",
        "retry", "remove", "set", "doctor", "account add", "account list", "account show", "account edit", "account check",
        "account unblock",
        "account remove", "queue status", "queue set", "queue start", "queue stop", "queue drain", "agent start", "agent stop",
        "agent status", "agent unit", "agent run",
    ]

    @Test(arguments: commands + ["account", "agent", "queue", ""])
    func anExample(command: String) async throws {
        let program = try TransferQ()
        let help = try await program.run(command.split(separator: " ").map(String.init) + ["--help"])
        #expect(help.status == 0 && help.diagnostics == "")
        // Long lines are wrapped.
        let text = help.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains("Example: transferq \(command)") || text.contains("| transferq \(command)"))
    }
}
