import Locking
import Testing
import TransferCore
import TransferKit

@Suite struct SlowOutageTests {
    /// After a failure, files avoid an endpoint for less than the 31 s that an attempt takes here.
    @Test func oneFileTriesEndpointsForAllFiles() async throws {
        let transport = SlowlyFailingTransport()
        let fixture = try await RunFixture(
            ["1": 10, "2": 10, "3": 10], hosts: ["x", "y"], options: SessionOptions(filesInFlight: 1), transport: transport)
        transport.clock.withLock { $0 = fixture.clock }
        let run = try await fixture.start()
        while fixture.clock.engineClock.now() < .seconds(62) { await Task.yield() }
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.delay == .seconds(2))
        #expect(transport.paths.withLock { $0 } == ["1", "1", "1", "1"])
        await fixture.close()
    }
}

/// A transport whose attempts fail after 31 s.
private final class SlowlyFailingTransport: Transport {
    let id: TransportID = "memory"
    let clock = Locked<TestClock?>(nil)
    let paths = Locked<[String]>([])

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        paths.withLock { $0.append(attempt.remotePath.description) }
        clock.withLock { $0 }?.advance(by: .seconds(31))
        throw TransferError(.unreachable, .connectionRefused, "No response.")
    }

    func shutdown() async {}
}
