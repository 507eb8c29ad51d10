import Foundation
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension TransferQ {
    /// The number of kills in a test. For a longer campaign: `TRANSFERKIT_KILLS=1000 Tests/run --filter KillTests`.
    static let kills = Int(ProcessInfo.processInfo.environment["TRANSFERKIT_KILLS"] ?? "") ?? 20

    /// Runs the queue, and kills it shortly after the first progress line for which the condition holds.
    func runAndKill(round: Int, when isDue: (String) throws -> Bool) async throws {
        let run = try start(["run", "--progress", "json"])
        for await line in run.lines {
            if try isDue(line) { break }
        }
        // Waits, so that the kill occurs between two progress lines, not exactly when a line is printed.
        try await Task.sleep(for: .microseconds(.random(in: 0...100_000)))
        run.send(SIGKILL)
        #expect(await run.result().wasKilled, "round \(round) ended before the kill")
    }
}
