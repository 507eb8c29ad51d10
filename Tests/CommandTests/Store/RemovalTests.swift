import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// `cancel --discard` removes unfinished uploads from the server. `queue status` reports the uploads until they are removed.
@Suite struct RemovalTests {
    /// Leaves an unfinished upload on the server and cancels its session while no process owns the queue.
    ///
    /// The upload is slow, so the upload is incomplete when the run stops, and only few bytes are in transit. The server receives these bytes
    /// before it removes the upload.
    private func leaveUnfinishedUpload(at studio: LoopbackStudio) async throws {
        let program = studio.program
        try program.folder.file("reel", size: 128 << 20)
        let id = try await program.succeed("add", "studio", "reel", "--rate", "1M").lines[0]
        let run = try RunningQueue(program)
        try await run.progress(of: id)
        run.command.send(SIGTERM)
        #expect(await run.command.result().status == 130)
        try await program.succeed("cancel", id, "--discard")
    }

    private func removalsDue(_ program: TransferQ) async throws -> Int? {
        try await program.succeed("queue", "status", "--json").objects().first?["removalsDue"] as? Int
    }

    @Test func removesUnfinishedUploads() async throws {
        try await LoopbackStudio.with(LoopbackOptions()) { studio in
            try await leaveUnfinishedUpload(at: studio)
            #expect(try await removalsDue(studio.program) == 1)
            let run = try await studio.program.succeed("run")
            #expect(!run.diagnostics.contains("unfinished"), "\(run.diagnostics)")
            #expect(try await removalsDue(studio.program) == 0)
            #expect(studio.server.statistics.uploads.map(\.requests.last?.method) == ["DELETE"])
            #expect(try await !studio.program.succeed("queue", "status").output.contains("Removals"))
        }
    }

    /// The run does not fail if an upload can't be removed.
    @Test func reportsUnremovedUploads() async throws {
        try await LoopbackStudio.with(LoopbackOptions()) { studio in
            try await leaveUnfinishedUpload(at: studio)
            await studio.server.stop()
            for _ in 1...2 {
                let run = try await studio.program.succeed("run")
                #expect(run.diagnostics.contains("1 unfinished upload could not be removed"), "\(run.diagnostics)")
                #expect(try await removalsDue(studio.program) == 1)
            }
            #expect(try await studio.program.succeed("queue", "status").output.contains("Removals:  1 pending"))
        }
    }
}
