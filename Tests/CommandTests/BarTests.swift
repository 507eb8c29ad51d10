import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct BarTests {
    @Test(arguments: [40, 80, 200] as [UInt16], [true, false])
    func onATerminal(columns: UInt16, hasColor: Bool) async throws {
        // Two files of half a second each, so that bars are drawn several times.
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 2 << 20)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": hasColor ? "" : "1"]
            try program.folder.file("a", size: 1 << 20)
            try program.folder.file("b", size: 1 << 20)
            let ids = try await program.succeed("add", "studio", "a", "b", "--each").lines
            let terminal = try PseudoTerminal(columns: columns)
            let result = try await program.start(["run"], diagnostics: terminal.terminal).result()
            let drawing = try await terminal.finish()
            #expect(result.status == 0)
            #expect(result.output == "")
            #expect(drawing.contains("total"))
            #expect(drawing.contains("[#"))
            #expect(drawing.contains("\u{1B}[32m") == hasColor)
            for id in ids { #expect(drawing.contains("completed\(hasColor ? "\u{1B}[0m" : "")  \(id.prefix(8))")) }
            let lines = drawing.replacing(/\u{1B}\[[0-9;]*[A-Za-z]/, with: "").split(whereSeparator: \.isNewline)
            let bars = lines.filter { $0.contains("[") && $0.contains("%") }
            #expect(bars.count > 2)
            #expect(bars.allSatisfy { $0.count < Int(columns) })
            // After the last line nothing is left of the bars.
            #expect(drawing.hasSuffix("2 sessions completed.\r\n"))
        }
    }

    @Test func onADumbTerminal() async throws {
        var program = try TransferQ()
        program.environment = ["TERM": "dumb"]
        let terminal = try PseudoTerminal(columns: 80)
        let result = try await program.start(["run"], diagnostics: terminal.terminal).result()
        #expect(result.status == 0)
        #expect(try await !terminal.finish().contains("\u{1B}"))
    }
}
