import Foundation
import SystemPackage
import TUSLoopback
import Testing

/// Repeated kills lose no data. Uploads don't send confirmed bytes again.
@Suite struct KillTests {
    private static let size = 100 << 20
    /// The maximum number of bytes in transit between two sockets when one end is killed.
    private static let window: Int64 = 8 << 20

    @Test func uploadsHundredMegabytesDespiteKills() async throws {
        // The server is slow enough for several progress reports, which occur ten times per second.
        try await LoopbackStudio.with(LoopbackOptions(bytesPerSecond: 16 << 20)) { studio in
            let program = studio.program
            try program.folder.file("reel", size: Self.size, seed: 1)
            try program.folder.file("note", size: 10)
            let ids = try await program.succeed("add", "studio", "reel", "note", "--each").lines
            // Stalls the upload at 90 %, so that no run can complete before it is killed, even on a slow machine.
            studio.server.stopContent(at: Int64(Self.size * 9 / 10))
            for round in 1...TransferQ.kills {
                // One in four runs is killed at the start, and all other runs at a random offset. The upper limit of the offset grows
                // with each round, up to two thirds of the file.
                let isEarly = Int.random(in: 0..<4) == 0
                let threshold = Int64.random(in: 0...Int64(Self.size * 2 / 3 * round / TransferQ.kills))
                try await program.runAndKill(round: round) { _ in isEarly || studio.server.statistics.bytesStored >= threshold }
            }
            #expect(
                try await studio.session(ids[0])["state"] as? String == "waiting", "the last run was killed before it completed the session"
            )
            studio.server.stopContent(at: nil)
            try await program.succeed("run", "--progress", "none")

            #expect(try studio.isUploaded("reel"))
            #expect(try studio.hasArrived("note"))
            for id in ids { #expect(try await studio.session(id)["state"] as? String == "completed") }
            try checkRequests(studio.server.statistics)
        }
    }

    @Test func downloadsInSegmentsDespiteKills() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let size = 160 << 20
            try program.folder.file("reel", size: size, seed: 2)
            try await program.succeed("account", "edit", "studio", "--setting", "parallelThreshold=1048576")
            let upload = try await program.succeed("add", "studio", "reel").lines[0]
            try await program.succeed("run", "--progress", "none")
            let items = try await studio.session(upload)["items"] as? [[String: Any]]
            let name = try #require((items?.first?["remoteURL"] as? String)?.split(separator: "/").last.map(String.init))
            let id = try await program.succeed("add", "studio", "--download", name, "--parallel", "4").lines[0]

            let kills = max(TransferQ.kills / 2, 1)
            let end = Int64(size * 9 / 10)
            studio.server.stopContent(at: end)
            for round in 1...kills {
                // Segments arrive in any order. The server stalls at `end`, and all bytes before `end` are eventually sent, so the run
                // reaches each threshold.
                let threshold = Int64.random(in: 0...end)
                try await program.runAndKill(round: round) { line in
                    (try CommandResult.object(line)["bytesSent"] as? Int64 ?? -1) >= threshold
                }
            }
            #expect(
                try await studio.session(id)["state"] as? String == "waiting", "the last run was killed before it completed the session")
            studio.server.stopContent(at: nil)
            try await program.succeed("run", "--progress", "none")

            let path = program.folder.path
            #expect(FileManager.default.contentsEqual(atPath: path.appending(name).string, andPath: path.appending("reel").string))
            // Each kill costs at most the bytes in transit on four connections, and the 64 MiB between two checkpoints.
            let limit = Int64(size) + Int64(kills) * (64 << 20 + 4 * Self.window)
            #expect(studio.server.statistics.bytesSent <= limit)
            let names = try FileManager.default.contentsOfDirectory(atPath: path.string)
            #expect(!names.contains { $0.hasSuffix(".part") }, "\(names)")
        }
    }

    private func checkRequests(_ statistics: LoopbackStatistics) throws {
        let reels = statistics.uploads.filter { $0.filename == "reel" }
        // If the client is killed between a creation and its response, the server keeps an empty upload that is unknown to the client.
        let orphans = reels.filter { !$0.isComplete }
        #expect(orphans.allSatisfy { $0.offset == 0 })
        #expect(reels.count - orphans.count == 1)
        let reel = try #require(reels.first { $0.isComplete })
        var known: Int64?
        for request in reel.requests {
            switch request.method {
            case "POST": known = 0
            case "HEAD": known = request.offset
            case "PATCH":
                #expect(request.offset == known, "a PATCH starts at the offset of the previous response")
                known = nil
            default: break
            }
        }
        let stored = reel.requests.reduce(0) { $0 + $1.received }
        #expect(stored == Int64(Self.size), "confirmed bytes are not sent again")
        #expect(statistics.bytesDiscarded <= Int64(TransferQ.kills) * Self.window)
        #expect(statistics.uploads.last?.filename == "note", "the sessions keep their order")
    }
}

extension LoopbackStudio {
    /// Whether at least one of the server's files with this name has the same content as the local file.
    fileprivate func isUploaded(_ name: String) throws -> Bool {
        server.storedFiles(named: name).contains {
            FileManager.default.contentsEqual(atPath: $0.string, andPath: program.folder.path.appending(name).string)
        }
    }
}
