import Locking
import Testing
import TransferCore
import TransferKit

/// Endpoints that can't be reached, and take their time to show it.
@Suite struct SlowOutageTests {
    /// By the time that the second one shows it, the first has not been tried for longer than files keep away from one alone.
    @Test func oneFileFindsOutForAll() async throws {
        let transport = SlowlyUnreachable()
        let fixture = try await RunFixture(
            ["1": 10, "2": 10, "3": 10], hosts: ["x", "y"], options: SessionOptions(filesInFlight: 1), transport: transport)
        transport.clock.withLock { $0 = fixture.clock }
        let run = try await fixture.start()
        while fixture.clock.engineClock.now() < .seconds(62) { await Task.yield() }
        await fixture.clock.sleeps(for: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.delay == .seconds(2))
        #expect(transport.paths.withLock { $0 } == ["1", "1", "1", "1"])
        await fixture.close()
    }
}

/// Each attempt takes 31 s, and fails.
private final class SlowlyUnreachable: Transport {
    let id: TransportID = "memory"
    let clock = Locked<TestClock?>(nil)
    let paths = Locked<[String]>([])

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        paths.withLock { $0.append(attempt.remotePath.description) }
        clock.withLock { $0 }?.advance(by: .seconds(31))
        throw TransferError(.unreachable, .connectionRefused, "Nobody answers.")
    }

    func shutdown() async {}
}
