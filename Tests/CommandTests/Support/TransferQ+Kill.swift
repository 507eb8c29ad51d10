import Foundation
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension TransferQ {
    /// How often a test kills; a longer campaign by hand: `TRANSFERKIT_KILLS=1000 Tests/run --filter KillTests`.
    static let kills = Int(ProcessInfo.processInfo.environment["TRANSFERKIT_KILLS"] ?? "") ?? 20

    /// Runs the queue, and kills it soon after the line of its progress at which that is due.
    func runAndKill(round: Int, when isDue: (String) throws -> Bool) async throws {
        let run = try start(["run", "--progress", "json"])
        for await line in run.lines {
            if try isDue(line) { break }
        }
        // Not at the moment of a line, but somewhere between two of them.
        try await Task.sleep(for: .microseconds(.random(in: 0...100_000)))
        run.send(SIGKILL)
        #expect(await run.result().wasKilled, "round \(round) ended by itself")
    }
}
