import Foundation
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension TransferQ {
    /// The number of kills in a test, 20 by default; some tests use half of it. To set another number:
    /// `TRANSFERKIT_KILLS=1000 Tests/run --filter KillTests`.
    static let kills = Int(ProcessInfo.processInfo.environment["TRANSFERKIT_KILLS"] ?? "") ?? 20

    /// Starts `transferq run`, and kills the process shortly after the first line of output for which `isDue` returns true.
    func runAndKill(round: Int, when isDue: (String) throws -> Bool) async throws {
        let run = try start(["run", "--progress", "json"])
        for await line in run.lines {
            if try isDue(line) { break }
        }
        // Waits for a random time, so that the process is not always killed right after it has printed a line.
        try await Task.sleep(for: .microseconds(.random(in: 0...100_000)))
        run.send(SIGKILL)
        #expect(await run.result().wasKilled, "round \(round) ended before the kill")
    }
}
