import TUSLoopback
import Testing

@Suite struct SummaryTests {
    /// The summary wraps at spaces, but never within a command.
    @Test func wrapsSummary() async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            try program.folder.file("large", size: 6)
            try program.folder.file("small", size: 5)
            let id = try await program.succeed("add", "studio", "small", "large").lines[0].prefix(8)
            let terminal = try PseudoTerminal(columns: 40)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 1)
            let drawing = try await terminal.finish()
            var screen = Screen(columns: 40)
            screen.write(drawing)
            let rows = screen.rows
            let advice = ["To see why it failed:", "transferq show \(id). To retry it:", "transferq retry \(id), then", "transferq run"]
            #expect(rows.filter { !$0.isEmpty }.suffix(4) == advice[...], "\(rows)")
            // The line about the failed file names the file.
            let text = rows.joined(separator: " ").split(separator: " ").joined(separator: " ")
            #expect(text.contains("gave up \(id) small and 1 more, file large: The server"), "\(text)")
        }
    }
}
