import HTTPSupport
import Locking
import Testing

/// Several tasks that await the same result, such as the response to `OPTIONS`.
@Suite(.timeLimit(.minutes(10))) struct SingleFlightTests {
    /// The tasks and the test run on the main actor. When the test receives a task's arrival, the task is therefore already suspended
    /// in `value(for:)`.
    @MainActor @Test func cancellationAffectsOnlyOneTask() async throws {
        let flight = SingleFlight<String, Int>()
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let runs = Locked(0)
        let wasCancelled = Locked(false)
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let tasks = (0..<3).map { _ in
            Task { @MainActor in
                arrival.yield()
                return try await flight.value(for: "key") {
                    runs.withLock { $0 += 1 }
                    for await _ in released {}
                    if Task.isCancelled { wasCancelled.withLock { $0 = true } }
                    return 7
                }
            }
        }
        var count = 0
        for await _ in arrivals {
            count += 1
            if count == tasks.count { break }
        }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        release.finish()
        #expect(try await tasks[1].value == 7)
        #expect(try await tasks[2].value == 7)
        #expect(runs.withLock { $0 } == 1)
        #expect(!wasCancelled.withLock { $0 })
    }
}
