import Foundation
import Testing
import TransferCommands
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs in which no session can start immediately.
@Suite(.serialized) struct WaitingRunTests {
    private static let start = "starts at 2040-01-02T03:04:05Z (1 other session waiting)"

    private func program() async throws -> (TransferQ, id: String) {
        var program = try TransferQ()
        program.environment = ["TERM": "xterm", "NO_COLOR": "1", "TZ": "UTC"]
        try await program.succeed("account", "add", "studio", "http://127.0.0.1:9/files/")
        try program.folder.file("a", size: 1)
        try await program.succeed("upload", "studio", "a", "--not-before", "2041-01-02T03:04:05Z")
        return (program, try await program.succeed("upload", "studio", "a", "--not-before", "2040-01-02T03:04:05Z").lines[0])
    }

    @Test(.timeLimit(.minutes(10))) func printsReasonOfWait() async throws {
        let (program, id) = try await program()
        let run = try program.start(["run"])
        while !run.diagnostics.contains(Self.start) { await Task.yield() }
        run.send(SIGINT)
        let result = await run.result()
        let lines = result.diagnostics.split(separator: "\n").filter { $0.hasPrefix("waiting ") }
        #expect(result.status == 130 && lines == ["waiting    \(id.prefix(8)) a: \(Self.start)"], "\(result.testDescription)")
    }

    @Test(.timeLimit(.minutes(10))) func showsReasonOfWaitOnTerminal() async throws {
        let (program, _) = try await program()
        let terminal = try PseudoTerminal(columns: 200)
        let run = try program.start(["run"], diagnostics: terminal.terminal)
        try await terminal.waitFor(Self.start)
        run.send(SIGINT)
        #expect(await run.result().status == 130)
        _ = try await terminal.finish()
    }

    @Test func namesHeldSessions() async throws {
        let (program, _) = try await program()
        try await program.succeed("hold", "--all")
        let run = try await program.succeed("run")
        #expect(run.diagnostics.contains("no session to run, because 2 sessions are held.\n"), "\(run.testDescription)")
        #expect(run.diagnostics.contains("transferq release --all"), "\(run.testDescription)")
    }

    /// The wait for a later start does not count as transfer time.
    @Test func countsOnlyTimeOfRunningSessions() {
        let (a, b) = (SessionID(), SessionID())
        var time = BusyTime()
        let events: [(Double, QueueEvent.Kind)] = [
            (0, .queueStarted), (600, .didActivate(a)), (601, .didStartRunning(a)), (602, .didActivate(b)), (604, .completed(a)),
            (604, .didDeactivate(a)), (605, .changed([b], .paused)), (700, .didStartRunning(b)), (703, .didDeactivate(b)),
            (900, .queueStopped),
        ]
        for (seconds, kind) in events {
            time.count(QueueEvent(revision: 0, time: Date(timeIntervalSince1970: seconds), kind: kind))
        }
        #expect(time.seconds == 8)
    }
}
