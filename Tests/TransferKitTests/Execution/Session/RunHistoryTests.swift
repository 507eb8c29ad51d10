import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunHistoryTests {
    /// As soon as the end was told, the session's next run may begin.
    @Test func aRunLeavesItsHistoryBeforeItTellsItsEnd() async throws {
        let fixture = try await RunFixture(["1": 10])
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "Busy.", retryAfter: .seconds(30)))
        #expect(try await fixture.run()?.delay == .seconds(30))
        #expect(fixture.historiesAtEnd.withLock { $0.keys.sorted() } == [0])
        await fixture.close()
    }
}
