import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ForecastQueueTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func forecastUsesRateOfAccount() async throws {
        let queue = try await fixture.openWithAccounts()
        let (firstGate, secondGate) = (fixture.memory.gate("1", atByte: 5_000), fixture.memory.gate("2", atByte: 5_000))
        let sessions = try await queue.enqueue(["1", "2", "3", "4", "5"].map { try fixture.upload($0) })
        try await queue.hold(sessions[3].id)
        #expect(try await queue.forecast().map(\.expectedStart) == [nil, nil, nil, nil], "the queue is not running")
        try await queue.start()
        try await firstGate.reached()
        #expect(try await queue.forecast().map(\.id) == [sessions[1].id, sessions[2].id, sessions[4].id])
        #expect(try await queue.forecast().map(\.expectedStart) == [nil, nil, nil], "no rate is known")
        // The first session sends 10,000 bytes in 10 seconds.
        fixture.clock.advance(by: .seconds(10))
        firstGate.open()
        try await secondGate.reached()
        let now = fixture.clock.engineClock.date()
        let forecast = try await queue.forecast()
        #expect(forecast.map(\.id) == [sessions[2].id, sessions[4].id])
        #expect(forecast.compactMap { $0.expectedStart?.timeIntervalSince(now).rounded() } == [5, 15])
        #expect(forecast.compactMap { $0.expectedEnd?.timeIntervalSince(now).rounded() } == [15, 25])
        try await queue.setRateLimit(500, account: "a")
        #expect(try await queue.forecast().compactMap { $0.expectedEnd?.timeIntervalSince(now).rounded() } == [30, 50])
        try await queue.pause(sessions[1].id)
        #expect(try await queue.forecast().map(\.expectedStart) == [nil, nil])
        await queue.shutdown()
    }

    @Test func forecastIncludesDependencies() async throws {
        let queue = try await fixture.openWithAccounts()
        var late = try fixture.upload("1")
        late.notBefore = fixture.clock.engineClock.date().addingTimeInterval(3_600)
        var after = try fixture.upload("2")
        after.dependency = .after(late.id)
        try FileManager.default.createDirectory(atPath: fixture.folder.path.appending("folder").string, withIntermediateDirectories: true)
        let folder = try SessionRequest.upload([fixture.folder.path.appending("folder")], to: "a")
        try await queue.enqueue([late, after, folder])
        try await queue.hold(folder.id)
        try await queue.start()
        let forecast = try await queue.forecast()
        let now = fixture.clock.engineClock.date()
        #expect(forecast.map { $0.expectedStart?.timeIntervalSince(now) } == [3_600, nil])
        await queue.shutdown()
    }
}
