import Dispatch
import ScriptedHTTP
import Testing
import TransferKit

/// A server that receives all bytes of a file immediately, but takes long to store the file.
@Suite(.serialized) struct SlowServerTests {
    /// Adds an upload, and calls `body`. The server responds only after `body` has called `respond`.
    private static func with(_ body: (_ program: TransferQ, _ respond: @Sendable () -> Void) async throws -> Void) async throws {
        let gate = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { _, _ in [.read(nil), .call { gate.wait() }, .answer(201)] }
        defer {
            gate.signal()
            server.stop()
        }
        var program = try TransferQ()
        program.environment = ["TERM": "xterm", "NO_COLOR": "1"]
        try await program.succeed("account", "add", "bucket", "http+put://127.0.0.1:\(server.port)/in/")
        try program.folder.file("reel", size: 1 << 20)
        try await program.succeed("upload", "bucket", "reel", "--rate", "1M")
        try await body(program) { gate.signal() }
    }

    @Test(.timeLimit(.minutes(10)), arguments: [40, 80, 200] as [UInt16]) func showsWaitForServer(columns: UInt16) async throws {
        try await Self.with { program, respond in
            let terminal = try PseudoTerminal(columns: columns)
            let run = try program.start(["run"], diagnostics: terminal.terminal)
            try await terminal.waitFor(columns == 40 ? " waiting" : " waiting for server")
            let drawn = terminal.drawn
            let list = try await program.succeed("list").lines[1]
            #expect(list.contains(/running +99% +1\.00 MiB/), "\(list)")
            respond()
            #expect(await run.result().status == 0)
            let lines = try await terminal.finish().drawnLines
            #expect(!drawn.contains("100%"), "\(lines)")
            #expect(try await program.succeed("list").lines[1].contains(#/completed +100% /#))
            let waits = lines.filter { $0.contains(" waiting") }
            #expect(waits.contains { $0.hasPrefix("reel ") } && waits.contains { $0.hasPrefix("total ") }, "\(waits)")
            #expect(
                waits.allSatisfy { $0.contains(" 99%") && $0.contains("#-]") && !$0.contains("B/s") && $0.count < Int(columns) }, "\(waits)"
            )
            // All columns stay aligned.
            #expect(Set(lines.filter { $0.contains("%") }.map(\.count)).count == 1, "\(lines)")
        }
    }

    /// While the server stores the file, further events report falling rates. Otherwise, the last reported rate would look like the
    /// current one.
    @Test(.timeLimit(.minutes(10))) func reportsFallingRate() async throws {
        try await Self.with { program, respond in
            let run = try program.start(["run", "--progress", "json"])
            var rates: [Double] = []
            for await line in run.lines {
                let event = try CommandResult.object(line)
                guard event["event"] as? String == "progress", event["bytesSent"] as? Int == 1 << 20 else { continue }
                #expect(event["bytesDone"] as? Int == 0 && event["secondsRemaining"] as? Double == nil, "\(line)")
                rates.append(try #require(event["rate"] as? Double))
                if rates.count == 3 { break }
            }
            respond()
            #expect(await run.result().status == 0)
            #expect(rates == rates.sorted(by: >) && Set(rates).count == 3, "\(rates)")
        }
    }
}
