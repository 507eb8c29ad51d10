import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// What a cancelled session left at a server is removed there, and told of while it is not.
@Suite struct RemovalTests {
    /// Leaves a part of an upload at the server, whose session is cancelled while nobody owns the queue.
    ///
    /// It is sent slowly, so that it is not complete before that and next to nothing is on its way, which the server takes before it removes anything.
    private func leavePart(at studio: LoopbackStudio) async throws {
        let program = studio.program
        try program.folder.file("reel", size: 128 << 20)
        let id = try await program.succeed("add", "studio", "reel", "--rate", "1M").lines[0]
        let run = try RunningQueue(program)
        try await run.progress(of: id)
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
        try await program.succeed("cancel", id)
    }

    private func removalsDue(_ program: TransferQ) async throws -> Int? {
        try await program.succeed("queue", "status", "--json").objects().first?["removalsDue"] as? Int
    }

    @Test func aRunWithNothingElseToDo() async throws {
        try await LoopbackStudio.with(LoopbackOptions()) { studio in
            try await leavePart(at: studio)
            #expect(try await removalsDue(studio.program) == 1)
            let run = try await studio.program.succeed("run")
            #expect(!run.diagnostics.contains("unfinished"), "\(run.diagnostics)")
            #expect(try await removalsDue(studio.program) == 0)
            #expect(studio.server.statistics.uploads.map(\.requests.last?.method) == ["DELETE"])
            #expect(try await !studio.program.succeed("queue", "status").output.contains("Removals"))
        }
    }

    /// That is no failure of anything that was to arrive.
    @Test func aServerThatIsGone() async throws {
        try await LoopbackStudio.with(LoopbackOptions()) { studio in
            try await leavePart(at: studio)
            await studio.server.stop()
            for _ in 1...2 {
                let run = try await studio.program.succeed("run")
                #expect(run.diagnostics.contains("1 unfinished upload could not be removed"), "\(run.diagnostics)")
                #expect(try await removalsDue(studio.program) == 1)
            }
            #expect(try await studio.program.succeed("queue", "status").output.contains("Removals:  1 due"))
        }
    }
}
