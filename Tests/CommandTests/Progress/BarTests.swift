import Foundation
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.serialized) struct BarTests {
    @Test(arguments: [40, 80, 200] as [UInt16], [true, false])
    func drawsBarsOnTerminal(columns: UInt16, hasColor: Bool) async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": hasColor ? "" : "1"]
            try program.folder.file("a", size: 1 << 20)
            try program.folder.file("b", size: 1 << 20)
            // Each transfer takes about a second, so that the bars are drawn several times, also after the remaining time is known.
            let ids = try await program.succeed("add", "studio", "a", "b", "--each", "--rate", "1M").lines
            let terminal = try PseudoTerminal(columns: columns)
            let result = try await program.start(["run"], diagnostics: terminal.terminal).result()
            let drawing = try await terminal.finish()
            #expect(result.status == 0)
            #expect(result.output == "")
            #expect(drawing.contains("\u{1B}[32m") == hasColor)
            let bars = drawing.drawnLines.filter { $0.contains("[") && $0.contains("%") }
            #expect(bars.count > 2)
            #expect(bars.contains { $0.hasPrefix("total") } && bars.contains { $0.hasPrefix("a ") && $0.contains("[#") })
            #expect(bars.allSatisfy { $0.count < Int(columns) })
            // The bars of all lines begin in the same column.
            #expect(Set(bars.map { $0.prefix { $0 != "[" }.count }).count == 1, "\(bars)")
            #expect(columns == 40 || bars.contains { $0.contains("iB/s") && $0.contains("1/2") })
            // A narrow display also shows the remaining time.
            #expect(bars.contains { $0.contains(/\s\d+:\d\d/) }, "\(bars)")
            #expect(bars.contains { $0.contains("1/2 sessions") && $0.contains(" left ") } == (columns == 200), "\(bars)")
            // The bars are erased at the end.
            var screen = Screen(columns: Int(columns))
            screen.write(drawing)
            let rows = screen.rows
            #expect(Array(rows.prefix(2)) == ids.enumerated().map { "completed  \($1.prefix(8)) \(["a", "b"][$0])" })
            // At 40 columns, the summary takes two rows.
            let summary = rows.dropFirst(2).filter { !$0.isEmpty }.joined(separator: " ")
            #expect(summary.contains(/^2 sessions completed\. Completed 2 files, 2\.00 MiB, in \d+:\d\d\.$/), "\(summary)")
            #expect(screen.unsupportedSequences == [])
        }
    }

    @Test func wrapsLines() async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            let name = "a name of many short words that needs three lines of the terminal"
            try program.folder.file("a", size: 1)
            let id = try await program.succeed("add", "studio", "a", "--name", name).lines[0]
            let terminal = try PseudoTerminal(columns: 40)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 0)
            var screen = Screen(columns: 40)
            screen.write(try await terminal.finish())
            let words = screen.rows.prefix(3).joined(separator: " ").split(separator: " ")
            #expect(words.joined(separator: " ") == "completed \(id.prefix(8)) \(name)", "\(screen.rows)")
            #expect(screen.rows[1].hasPrefix("           "), "\(screen.rows)")
        }
    }

    @Test(arguments: [true, false]) func colorsFailuresInSummary(hasColor: Bool) async throws {
        try await LoopbackStudio.with(LoopbackOptions(maximumSize: 5)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": hasColor ? "" : "1"]
            try program.folder.file("large", size: 6)
            try await program.succeed("add", "studio", "large")
            let terminal = try PseudoTerminal(columns: 80)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 1)
            let failures = hasColor ? "\u{1B}[31m1 failed\u{1B}[0m" : "1 failed"
            #expect(try await terminal.finish().contains("0 sessions completed, \(failures)."))
        }
    }

    @Test func showsCompletedFilesAndRemainingTime() async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            for name in ["a", "b", "c"] { try program.folder.file(name, size: 1 << 20) }
            try await program.succeed("add", "studio", "a", "b", "c", "--name", "three", "--rate", "2M", "--parallel", "1")
            let terminal = try PseudoTerminal(columns: 80)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 0)
            let bars = try await terminal.finish().drawnLines.filter { $0.hasPrefix("three ") }
            #expect(bars.contains { $0.contains(/\[#.*%.*iB\/s +\d+:\d\d +2\/3( +3\.00 MiB)?$/) }, "\(bars)")
        }
    }

    /// Each redraw uses the current width. It erases the whole previous drawing, even if the terminal has wrapped the drawing into more
    /// rows.
    @Test func redrawsAfterResize() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            try program.folder.sparseFile("a", size: 120 << 20)
            try await program.succeed("add", "studio", "a")
            let terminal = try PseudoTerminal(columns: 200)
            let run = try program.start(["run"], diagnostics: terminal.terminal)
            // The display has two rows: the bar of the session, and the bar of the total.
            while !terminal.drawn.contains("\u{1B}[2A") { await Task.yield() }
            terminal.resize(columns: 40)
            // Each of the two lines has 199 columns, which now take five rows of 40 columns. The cursor therefore moves up ten rows.
            while !terminal.drawn.contains("\u{1B}[10A") { await Task.yield() }
            let narrow = terminal.drawn.count
            while !terminal.drawn.dropFirst(narrow).contains("\u{1B}[2A") { await Task.yield() }
            run.send(SIGINT)
            #expect(await run.result().status == 130)
            let drawing = try await terminal.finish()
            let last = try #require(drawing.ranges(of: "\u{1B}[10A").last)
            let lines = String(drawing[last.upperBound...]).drawnLines.filter { $0.contains("%") }
            #expect(!lines.isEmpty && lines.allSatisfy { $0.count < 40 })
            #expect(drawing.contains("Interrupted. "))
        }
    }

    /// More sessions are running than the terminal has rows.
    @Test func limitsBarsToTerminalHeight() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            let names = (0..<9).map { "\($0)" }
            for name in names { try program.folder.sparseFile(name, size: 1 << 20) }
            _ = try await program.run(["add", "studio"] + names + ["--each"])
            let terminal = try PseudoTerminal(columns: 80, rows: 6)
            let result = try await program.start(["run", "--max-sessions", "9"], diagnostics: terminal.terminal).result()
            #expect(result.status == 0)
            let drawing = try await terminal.finish()
            #expect(drawing.contains("… and 6 more"))
            let moves = drawing.matches(of: /\u{1B}\[(\d+)A/).compactMap { Int($0.1) }
            #expect(moves.max() == 5)
            var screen = Screen(columns: 80)
            screen.write(drawing)
            #expect(screen.rows.count == 11 && screen.rows.dropLast(2).allSatisfy { $0.hasPrefix("completed  ") })
        }
    }

    /// The size of a folder counts as 0 until the run reads the folder.
    @Test func addsFolderToTotal() async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            try FileManager.default.createDirectory(
                atPath: program.folder.path.appending("shots").string, withIntermediateDirectories: true)
            for name in 0..<4 { try program.folder.file("shots/\(name)", size: 1 << 20) }
            try await program.succeed("add", "studio", "shots", "--rate", "4M")
            let terminal = try PseudoTerminal(columns: 80)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 0)
            let totals = try await terminal.finish().drawnLines.filter { $0.hasPrefix("total") }
            #expect(totals.last?.contains("4.00 MiB") == true, "\(totals)")
            let percents = totals.compactMap { $0.firstMatch(of: /(\d+)%/).flatMap { Int($0.1) } }
            #expect(percents.contains { (1..<100).contains($0) }, "\(totals)")
        }
    }

    /// While the size of a download is unknown, the number of received bytes replaces the percentage.
    @Test(.timeLimit(.minutes(10)), arguments: [80, 20] as [UInt16]) func showsBytesOfUnknownSize(columns: UInt16) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        let server = try ScriptedServer { request, _ in
            guard request.method == "GET" else { return [.answer(405)] }
            return [.raw(head + "186a0\r\n" + String(repeating: "x", count: 100_000) + "\r\n"), .silence]
        }
        defer { server.stop() }
        var program = try TransferQ()
        program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/")
        let id = try await program.succeed("download", "bucket", "reel").lines[0]
        #expect(try await program.succeed("list").lines[1].contains(/waiting +0 B +– +reel/))
        let terminal = try PseudoTerminal(columns: columns)
        let run = try program.start(["run"], diagnostics: terminal.terminal)
        try await terminal.waitFor("97.7 KiB")
        let (list, show) = (try await program.succeed("list").lines[1], try await program.succeed("show", id).output)
        run.send(SIGINT)
        _ = await run.result()
        let drawn = try await terminal.finish().drawnLines
        #expect(list.contains(/running +97\.7 KiB +– +reel/), "\(list)")
        #expect(show.contains(/Bytes: .*97\.7 KiB/) && show.contains("of an unknown number") && !show.contains("%"), "\(show)")
        for name in ["reel", "total"] {
            let bars = drawn.filter { $0.hasPrefix(name) && $0.contains("97.7 KiB") }
            #expect(!bars.isEmpty && bars.allSatisfy { !$0.contains("%") && $0.count < columns }, "\(drawn)")
            if columns == 80 { #expect(bars.allSatisfy { $0.contains(#/\[ *97\.7 KiB\] +– /#) }, "\(bars)") }
        }
    }

    @Test(.timeLimit(.minutes(10))) func includesLaterSessionsInTotal() async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            for name: String in ["a", "b", "c"] { try program.folder.file(name, size: 1_000) }
            let held = try await program.succeed("add", "studio", "b", "--hold").lines[0]
            let terminal = try PseudoTerminal(columns: 80)
            let run = try program.start(["run", "--forever"], diagnostics: terminal.terminal)
            try await terminal.waitFor("0/0")
            try await program.succeed("add", "studio", "a")
            try await terminal.waitFor("1/1")
            try await program.succeed("release", held)
            try await terminal.waitFor("2/2")
            let third = try await program.succeed("add", "studio", "c", "--hold").lines[0]
            try await program.succeed("remove", third)
            run.send(SIGINT)
            #expect(await run.result().status == 130)
            let totals = try await terminal.finish().drawnLines.filter { $0.hasPrefix("total") }
            #expect(totals.first?.contains(" 0%") == true, "\(totals)")
            #expect(totals.allSatisfy { !$0.contains("1/0") && !$0.contains("2/1") }, "\(totals)")
            #expect(totals.last?.contains("100%") == true && totals.last?.contains("2/2") == true, "\(totals)")
        }
    }

    /// A paused session keeps its slot, so a later run does not activate the session again. The display must show the session anyway.
    @Test(.timeLimit(.minutes(10))) func showsSessionPausedInEarlierRun() async throws {
        try await LoopbackStudio.with { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            try program.folder.sparseFile("large", size: 64 << 20)
            let id = try await program.succeed("add", "studio", "large", "--rate", "64K").lines[0]
            try await program.pauseRunningSession(id)
            let terminal = try PseudoTerminal(columns: 80)
            let run = try program.start(["run", "--forever"], diagnostics: terminal.terminal)
            try await terminal.waitFor("total")
            try await program.succeed("resume", id)
            try await terminal.waitFor("large ")
            try await program.succeed("set", id, "--rate", "0")
            try await terminal.waitFor("completed")
            run.send(SIGINT)
            #expect(await run.result().status == 130)
            let drawing = try await terminal.finish()
            #expect(drawing.contains("completed  \(id.prefix(8)) large"))
        }
    }

    /// Output to files must not contain cursor movements.
    @Test func printsPlainLinesWithoutTerminal() async throws {
        try await LoopbackStudio.with { studio in
            try studio.program.folder.file("a", size: 1_000)
            let id = try await studio.program.succeed("add", "studio", "a").lines[0]
            let run = try await studio.program.succeed("run", "--progress", "bars")
            #expect(!run.diagnostics.contains("\u{1B}"))
            #expect(run.diagnostics.contains("completed  \(id.prefix(8)) a\n"))
        }
    }

    /// An East Asian character takes two columns.
    @Test func fitsWideNames() async throws {
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 1 << 20)) { studio in
            var program = studio.program
            program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
            try program.folder.file("a", size: 1 << 20)
            try await program.succeed("add", "studio", "a", "--name", String(repeating: "映", count: 60))
            let terminal = try PseudoTerminal(columns: 80)
            #expect(try await program.start(["run"], diagnostics: terminal.terminal).result().status == 0)
            let bars = try await terminal.finish().drawnLines.filter { $0.hasPrefix("映") && $0.contains("%") }
            #expect(!bars.isEmpty)
            for bar in bars { #expect(bar.count + bar.count(where: { $0 == "映" }) < 80, "\(bar)") }
            let listed = try await program.succeed("list").lines
            #expect(listed.count == 2)
        }
    }

    @Test func printsPlainLinesOnDumbTerminal() async throws {
        var program = try TransferQ()
        program.environment = ["TERM": "dumb"]
        let terminal = try PseudoTerminal(columns: 80)
        let result = try await program.start(["run"], diagnostics: terminal.terminal).result()
        #expect(result.status == 0)
        #expect(try await !terminal.finish().contains("\u{1B}"))
    }
}

extension String {
    var drawnLines: [Substring] {
        replacing(/\u{1B}\[[0-9;]*[A-Za-z]/, with: "").split(whereSeparator: \.isNewline)
    }
}
