import Testing
import TransferCore
import TransferKit

/// Over any ten seconds, the traffic stays within 5 % of every limit.
@Suite struct PacerRateTests {
    enum LimitScope: CaseIterable {
        case queue, account, session
    }

    struct Layout: Sendable {
        var sessions: Int
        var filesEach: Int
        var readSize: Int

        var files: [PacedTraffic.File] {
            (1...sessions).flatMap { session in
                (0..<filesEach).map { _ in PacedTraffic.File(session: SessionKey(session), readSize: readSize) }
            }
        }
    }

    static let layouts = [
        Layout(sessions: 1, filesEach: 1, readSize: 65_536), Layout(sessions: 1, filesEach: 6, readSize: 16_384),
        Layout(sessions: 2, filesEach: 1, readSize: 32_768), Layout(sessions: 3, filesEach: 6, readSize: 65_536),
    ]

    @Test(arguments: [1 << 10, 10_000, 100_000, 1 << 20, 10 << 20], layouts)
    func staysWithinFivePercentOfRate(rate: Int64, layout: Layout) {
        var traffic = PacedTraffic(layout.files)
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 22)
        let extremes = traffic.extremes(rate: rate)
        #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(extremes)")
    }

    @Test(
        arguments: [100 << 20, 1 << 30],
        [Layout(sessions: 1, filesEach: 1, readSize: 65_536), Layout(sessions: 3, filesEach: 2, readSize: 65_536)])
    func staysWithinFivePercentOfHighestRates(rate: Int64, layout: Layout) {
        var traffic = PacedTraffic(layout.files)
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 11)
        let extremes = traffic.extremes(rate: rate)
        #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(extremes)")
    }

    @Test(arguments: LimitScope.allCases, [1 << 10, 1 << 20] as [Int64])
    func respectsEveryKindOfLimit(scope: LimitScope, rate: Int64) {
        var traffic = PacedTraffic(Layout(sessions: 1, filesEach: 4, readSize: 65_536).files)
        switch scope {
        case .queue: traffic.pacer.setQueueRate(rate)
        case .account: traffic.pacer.setRate(rate, account: 1)
        case .session: traffic.pacer.setRate(rate, session: 1)
        }
        traffic.run(until: 22)
        let extremes = traffic.extremes(rate: rate)
        #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(extremes)")
    }

    @Test func manySessionsShareLowRate() {
        var traffic = PacedTraffic(Layout(sessions: 20, filesEach: 2, readSize: 16_384).files)
        traffic.pacer.setQueueRate(4_096)
        traffic.run(until: 12)
        let extremes = traffic.extremes(rate: 4_096)
        #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(extremes)")
    }

    @Test func respectsNestedLimits() {
        let files: [PacedTraffic.File] = [
            .init(session: 1, account: 1), .init(session: 1, account: 1), .init(session: 2, account: 1), .init(session: 3, account: 2),
            .init(session: 4, account: 3),
        ]
        var traffic = PacedTraffic(files)
        traffic.pacer.setQueueRate(1_000_000)
        traffic.pacer.setRate(300_000, account: 1)
        traffic.pacer.setRate(100_000, session: 1)
        traffic.pacer.setRate(50_000, session: 3)
        traffic.run(until: 30)
        let expected: [(Int64, ClosedRange<Double>)] = [
            (1_000_000, traffic.extremes(rate: 1_000_000)),
            (300_000, traffic.extremes(rate: 300_000) { $0.account == 1 }),
            (100_000, traffic.extremes(rate: 100_000) { $0.session == 1 }),
            (200_000, traffic.extremes(rate: 200_000) { $0.session == 2 }),
            (50_000, traffic.extremes(rate: 50_000) { $0.session == 3 }),
            (650_000, traffic.extremes(rate: 650_000) { $0.session == 4 }),
        ]
        for (rate, extremes) in expected {
            #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(rate): \(extremes)")
        }
    }

    @Test(arguments: [1 << 10, 1 << 20] as [Int64])
    func permitsNoBurstAfterIdleTime(rate: Int64) {
        var traffic = PacedTraffic(Layout(sessions: 2, filesEach: 3, readSize: 65_536).files)
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 5)
        traffic.idle(seconds: 3_600)
        traffic.run(until: traffic.now + 15)
        #expect(traffic.extremes(rate: rate).upperBound <= 1.05)
    }

    @Test func transportsThatContinueLateGetFullRate() {
        let late = PacedTraffic.File(lateness: 80)
        var traffic = PacedTraffic([late, late, late])
        traffic.pacer.setQueueRate(50_000)
        traffic.run(until: 30)
        #expect(traffic.extremes(rate: 50_000).lowerBound >= 0.95)
    }

    @Test(arguments: [1, 3, 60] as [Int64])
    func respectsRatesOfFewBytesPerSecond(rate: Int64) {
        var traffic = PacedTraffic(Layout(sessions: 3, filesEach: 2, readSize: 16_384).files)
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 110)
        let moved = traffic.bytes(from: 10, to: 110)
        #expect(abs(moved - Int(rate) * 100) <= 6 + Int(rate) * 5, "\(moved)")
        #expect((1...3).allSatisfy { session in traffic.bytes(of: { $0.session == session }, from: 10, to: 110) > Int(rate) * 25 })
    }

    @Test func grantsFullReadsAndRefusesRarely() {
        var traffic = PacedTraffic(Layout(sessions: 3, filesEach: 2, readSize: 65_536).files)
        traffic.pacer.setQueueRate(100 << 20)
        traffic.run(until: 10)
        for responses in traffic.responses {
            #expect(responses.smallest >= 65_536)
            #expect(responses.refused <= 100 * 10)
            #expect(responses.longestWait <= .milliseconds(500))
        }
    }

    @Test func frequentRequestsGetNoExtraBytes() {
        var traffic = PacedTraffic([.init(session: 1, impatience: 0.000_1), .init(session: 2)])
        traffic.pacer.setQueueRate(1 << 20)
        traffic.run(until: 12)
        #expect(traffic.responses[0].smallest >= 1_024)
        #expect(traffic.extremes(rate: 1 << 19) { $0.session == 2 }.lowerBound >= 0.95)
        #expect(traffic.extremes(rate: 1 << 20).upperBound <= 1.05)
    }
}
