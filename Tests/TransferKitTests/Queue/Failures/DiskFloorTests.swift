import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The disk floor: no session starts while the disk of the storage folder has less free space than this minimum.
@Suite struct DiskFloorTests {
    @Test func startsNoSessionBelowFloorButContinuesRuns() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A")
        try queue.disk(free: 999)
        try queue.add("B")
        #expect(queue.states == "A=running B=waiting")
        #expect(queue.waitReason(of: "B") == .diskBelowFloor(free: 999, floor: 1_000))
        try queue.apply(.run(), "B")
        #expect(queue.states == "A=running B=waiting", "no session is stopped in favour of one that can't start")
        try queue.end("A")
        #expect(queue.isIdle)
        try queue.disk(free: 1_000)
        #expect(queue.states == "A=completed B=running")
    }

    @Test func resumedSessionWaitsForSpace() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.apply(.pause, "A")
        try queue.finishStopping("A")
        try queue.disk(free: 0)
        try queue.apply(.resume, "A")
        #expect(queue.states == "A=waiting" && queue.waitReason(of: "A") == .diskBelowFloor(free: 0, floor: 1_000))
    }

    @Test func checksDiskRepeatedlyWhileSessionsWait() throws {
        var queue = try SchedulerFixture()
        try queue.disk(free: 5)
        #expect(queue.run.scheduler.nextDue(after: queue.run.now) == nil, "no session waits")
        try queue.add("A")
        #expect(queue.run.scheduler.nextDue(after: queue.run.now) == .seconds(30))
        try queue.advance(seconds: 30)
        #expect(queue.run.scheduler.nextDue(after: queue.run.now) == .seconds(60))
    }

    private func open(_ fixture: QueueFixture, floor: Int64 = 1_000, override: Int64? = nil, _ freeSpace: @escaping @Sendable () -> Int64?)
        async throws
        -> TransferQueue
    {
        var configuration = QueueConfiguration(diskFloor: floor)
        configuration.logger.logLevel = .critical
        configuration.clock = fixture.clock.engineClock
        configuration.freeSpace = { _ in freeSpace() }
        configuration.diskFloorOverride = override
        let queue = try await TransferQueue(
            storage: .folder(fixture.folder.path.appending("store")), transports: [fixture.memory], configuration: configuration)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        return queue
    }

    @Test func storesFloor() async throws {
        let fixture = try QueueFixture()
        var queue = try await open(fixture) { 500 }
        let session = try await queue.enqueue(fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await session.status.why == .diskBelowFloor(free: 500, floor: 1_000))
        await #expect(throws: QueueError.self) { try await queue.setDiskFloor(1 << 56 + 1) }
        let error = await #expect(throws: QueueError.self) { try await queue.setDiskFloor(-1) }
        #expect(error?.code == .invalidRequest)
        try await queue.setDiskFloor(500)
        _ = try await session.value
        await queue.shutdown()

        queue = try await open(fixture) { 500 }
        #expect(await queue.status().diskFloor == 500)
        try await queue.setDiskFloor(501)
        await queue.shutdown()
        queue = try await open(fixture, override: 400) { 500 }
        #expect(await queue.status().diskFloor == 400)
        let second = try await queue.enqueue(fixture.upload("2"))
        try await queue.start()
        _ = try await second.value
        try await queue.setDiskFloor(nil)
        #expect(await queue.status().diskFloor == 1_000)
        await queue.shutdown()
    }

    @Test func startsOnceThereIsSpace() async throws {
        let fixture = try QueueFixture()
        let free = Locked<Int64?>(10)
        let queue = try await open(fixture) { free.withLock { $0 } }
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        #expect(try await session.status.why == .diskBelowFloor(free: 10, floor: 1_000))
        await fixture.clock.waitForSleep(of: .seconds(30))
        free.withLock { $0 = 1_000 }
        fixture.clock.advance(by: .seconds(30))
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test(arguments: [(Int64(0), Int64?(0)), (1_000, nil)]) func startsIfFloorIsZeroOrSpaceIsUnknown(floor: Int64, free: Int64?)
        async throws
    {
        let fixture = try QueueFixture()
        let queue = try await open(fixture, floor: floor) { free }
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func readsFreeSpaceOfDisks() throws {
        let folder = try TemporaryFolder()
        #expect(try #require(QueueConfiguration().freeSpace(folder.path)) > 0)
        #expect(QueueConfiguration().freeSpace(folder.path.appending("nothing")) == nil)
    }
}
