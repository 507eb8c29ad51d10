import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunHistoryTests {
    /// The next run needs the history of each file's failures, and may start as soon as this run reports its end.
    @Test func storesHistoryBeforeReportingEnd() async throws {
        let fixture = try await RunFixture(["1": 10])
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "Busy.", retryAfter: .seconds(30)))
        #expect(try await fixture.run()?.delay == .seconds(30))
        #expect(fixture.historiesAtEnd.withLock { $0.keys.sorted() } == [0])
        await fixture.close()
    }
}
