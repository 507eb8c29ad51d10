import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct TimetableTests {
    private typealias Rule = BandwidthTimetable.Rule

    /// Parses a UTC date in ISO 8601 format without a time zone.
    private static func date(_ text: String) throws -> Date { try Date("\(text)Z", strategy: .iso8601) }

    /// Returns the offset of the local time in Berlin from UTC in the year 2026, in seconds. The clocks change at 01:00 UTC.
    private static func berlin(_ date: Date) -> Int {
        let summer = 1_774_746_000.0..<1_792_890_000.0
        return summer.contains(date.timeIntervalSince1970) ? 7_200 : 3_600
    }

    private static func limit(_ timetable: BandwidthTimetable, _ time: String) throws -> Int64? {
        let date = try date(time)
        return timetable.limit(at: date, utcOffset: berlin(date), otherwise: 7)
    }

    @Test func firstRuleThatIncludesTimeApplies() throws {
        let workdays: Set<BandwidthTimetable.Weekday> = [.monday, .tuesday, .wednesday, .thursday, .friday]
        let timetable = BandwidthTimetable([
            Rule(days: workdays, start: 480, end: 1_080, rateLimit: 2_000), Rule(days: [.friday], start: 1_320, end: 360, rateLimit: 50),
            Rule(days: [.sunday], rateLimit: nil), Rule(days: [.friday], start: 480, end: 1_080, rateLimit: 1),
        ])
        // In summer, local times are two hours ahead of UTC. 1 June 2026 is a Monday.
        let cases: [(String, Int64?)] = [
            ("2026-06-01T05:59:59", 7), ("2026-06-01T06:00:00", 2_000), ("2026-06-01T15:59:59", 2_000), ("2026-06-01T16:00:00", 7),
            ("2026-06-05T10:00:00", 2_000), ("2026-06-05T19:59:59", 7), ("2026-06-05T20:00:00", 50), ("2026-06-06T03:59:59", 50),
            ("2026-06-06T04:00:00", 7), ("2026-06-06T10:00:00", 7), ("2026-06-06T21:59:59", 7), ("2026-06-06T22:00:00", nil),
            ("2026-06-07T21:59:59", nil), ("2026-06-07T22:00:00", 7),
        ]
        for (time, expected) in cases { #expect(try Self.limit(timetable, time) == expected, "\(time)") }
    }

    @Test func rulesFollowDaylightSaving() throws {
        let timetable = BandwidthTimetable([Rule(days: [.sunday], start: 150, end: 240, rateLimit: 100)])
        // On 29 March, the time from 02:00 to 03:00 does not exist: the rule begins at 03:00, which is 01:00 UTC. On 25 October, the hour
        // from 02:00 occurs twice.
        let cases: [(String, Int64?)] = [
            ("2026-03-29T00:59:59", 7), ("2026-03-29T01:00:00", 100), ("2026-03-29T01:59:59", 100), ("2026-03-29T02:00:00", 7),
            ("2026-10-25T00:29:59", 7), ("2026-10-25T00:30:00", 100), ("2026-10-25T00:59:59", 100), ("2026-10-25T01:00:00", 7),
            ("2026-10-25T01:29:59", 7), ("2026-10-25T01:30:00", 100), ("2026-10-25T02:59:59", 100), ("2026-10-25T03:00:00", 7),
        ]
        for (time, expected) in cases { #expect(try Self.limit(timetable, time) == expected, "\(time)") }
    }

    @Test(arguments: ["2026-03-28T12:00:00", "2026-10-24T12:00:00"]) func pacerFollowsEachSecond(start: String) throws {
        let timetable = BandwidthTimetable([
            Rule(days: [.sunday], start: 150, end: 240, rateLimit: 1_000), Rule(start: 1_200, end: 90, rateLimit: 2_000),
            Rule(days: [.sunday], start: 600, end: 601, rateLimit: 3_000),
        ])
        let (start, second) = (try Self.date(start), Locked(0))
        let pacer = Pacer(
            clock: EngineClock(
                now: { .seconds(second.withLock { $0 }) }, date: { start + Double(second.withLock { $0 }) }, sleep: { _ in },
                utcOffset: Self.berlin))
        pacer.setQueueRate(nil, timetable: timetable)
        var (wrong, changes, last) = (0, 0, Int64?.none)
        for number in 0..<172_800 {
            second.withLock { $0 = number }
            let date = start + Double(number)
            let limit = timetable.limit(at: date, utcOffset: Self.berlin(date), otherwise: nil)
            let bytes = pacer.allowance(upTo: 1 << 20, session: 1, account: 1).bytes
            // Without a limit, each request is granted. The token bucket of a limit holds the bytes of less than a second.
            if (bytes == 1 << 20) != (limit == nil) || limit.map({ bytes > Int($0) }) ?? false { wrong += 1 }
            if limit != last { changes += 1 }
            last = limit
        }
        #expect(wrong == 0)
        #expect(changes >= 8)
    }

    @Test func pacerFollowsClockThatIsSetBack() throws {
        let (monday, offset) = (try Self.date("2026-06-01T05:00:00"), Locked(0.0))
        let pacer = Pacer(
            clock: EngineClock(
                now: { .zero }, date: { monday + offset.withLock { $0 } }, sleep: { _ in }, utcOffset: { _ in 0 }))
        pacer.setRate(nil, timetable: BandwidthTimetable([Rule(days: [.monday], start: 360, end: 420, rateLimit: 5)]), account: 3)
        let isLimited = { pacer.allowance(upTo: 1_000, session: 1, account: 3).bytes < 1_000 }
        #expect(!isLimited())
        offset.withLock { $0 = 3_600 }
        #expect(isLimited() && pacer.allowance(upTo: 1_000, session: 1, account: 4).bytes == 1_000)
        offset.withLock { $0 = 3_599 }
        #expect(!isLimited())
        offset.withLock { $0 = 3_600 }
        pacer.setRate(nil, account: 3)
        #expect(!isLimited() && pacer.limitCount == 0)
    }

    @Test func storedTimetableApplies() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("timetable-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let memory = MemoryTransport()
        let open = { try await TransferQueue(storage: .folder(folder), transports: [memory]) }
        var queue = try await open()
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        let timetable = BandwidthTimetable([
            Rule(days: [.monday, .sunday], start: 5, end: 6, rateLimit: 1_000), Rule(rateLimit: 1_000), Rule(rateLimit: nil),
        ])
        try await queue.setRateLimit(50, account: nil)
        try await queue.setTimetable(timetable)
        try await queue.setTimetable(BandwidthTimetable([Rule(rateLimit: nil)]), account: "a")
        try await queue.setRateLimit(70, account: "a")
        await queue.shutdown()
        queue = try await open()
        let status = await queue.status()
        #expect(status.timetable == timetable && status.rateLimit == 50 && status.currentRateLimit == 1_000)
        let account = try #require(await queue.account("a"))
        #expect(account.account.rateLimit == 70 && account.account.timetable != nil && account.currentRateLimit == nil)
        #expect(queue.pacer.allowance(upTo: 1 << 20, session: 1, account: 1).bytes <= 1_000)
        try await queue.setTimetable(nil)
        try await queue.setTimetable(nil, account: "a")
        #expect(await queue.status().currentRateLimit == 50)
        #expect(await queue.account("a")?.currentRateLimit == 70)
        for rule in [
            Rule(days: [], rateLimit: 1), Rule(start: 1_440, rateLimit: 1), Rule(end: 0, rateLimit: 1), Rule(start: -1, rateLimit: 1),
            Rule(rateLimit: 0), Rule(end: 1_441, rateLimit: 1),
        ] {
            let error = await #expect(throws: QueueError.self) { try await queue.setTimetable(BandwidthTimetable([rule])) }
            #expect(error?.code == .invalidRequest)
        }
        await #expect(throws: QueueError.self) { try await queue.setTimetable(BandwidthTimetable([])) }
        await queue.shutdown()
        queue = try await open()
        #expect(await queue.status().timetable == nil)
        await queue.shutdown()
    }

    @Test func usesLocalTimeOfMachine() {
        for date in [Date(), Date(timeIntervalSince1970: 0), Date(timeIntervalSinceNow: 15_000_000)] {
            #expect(EngineClock.systemOffset(at: date) == TimeZone.current.secondsFromGMT(for: date))
        }
        _ = EngineClock.systemOffset(at: .distantFuture)
        _ = EngineClock.systemOffset(at: .distantPast)
    }
}
