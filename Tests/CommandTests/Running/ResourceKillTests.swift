import Foundation
import TUSLoopback
import Testing

/// Kills during uploads over the IETF protocol for resumable uploads. The transport saves the upload's URL while the creating request still
/// sends content, so a killed upload resumes.
@Suite(.serialized) struct ResourceKillTests {
    private static let size = 40 << 20

    @Test(arguments: LoopbackDialect.allCases.filter { $0 != .tus }) func uploadsDespiteKills(dialect: LoopbackDialect) async throws {
        let options = LoopbackOptions(bytesPerSecond: 16 << 20, dialect: dialect, progressInterval: 1 << 20)
        try await LoopbackStudio.with(options) { studio in
            let program = studio.program
            try program.folder.file("reel", size: Self.size, seed: 1)
            try await program.succeed("account", "edit", "studio", "--setting", "dialect=ietf")
            let id = try await program.succeed("add", "studio", "reel").lines[0]
            // Stalls the upload at 90 %, so that no run can complete before it is killed, even on a slow machine.
            studio.server.stopContent(at: Int64(Self.size * 9 / 10))
            for round in 1...TransferQ.kills {
                let threshold = Int64.random(in: 4 << 20...max(4 << 20, Int64(Self.size * 2 / 3 * round / TransferQ.kills)))
                try await program.runAndKill(round: round) { _ in studio.server.statistics.bytesStored >= threshold }
            }
            studio.server.stopContent(at: nil)
            try await program.succeed("run", "--progress", "none")

            #expect(try await studio.session(id)["state"] as? String == "completed")
            #expect(try studio.hasArrived("reel"), "there is only one upload")
            let statistics = studio.server.statistics
            #expect(statistics.requests["POST"] == 1)
            #expect(statistics.bytesStored == Int64(Self.size), "no byte is stored twice")
        }
    }
}
