import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct PacerChangeTests {
    private func traffic() -> PacedTraffic {
        PacedTraffic([.init(session: 1), .init(session: 1), .init(session: 2, readSize: 16_384)])
    }

    private func fractionOfRate(_ traffic: PacedTraffic, of rate: Int64, from start: Double, to end: Double) -> Double {
        Double(traffic.bytes(from: start, to: end)) / (Double(rate) * (end - start))
    }

    @Test(arguments: [(1_024, 1_000_000), (100_000, 50_000_000)] as [(Int64, Int64)])
    func raisedLimitAppliesWithinSecond(slow: Int64, fast: Int64) {
        var traffic = traffic()
        traffic.pacer.setQueueRate(slow)
        traffic.run(until: 10)
        traffic.pacer.setQueueRate(fast)
        traffic.run(until: 21)
        #expect((0.95...1.05).contains(fractionOfRate(traffic, of: fast, from: 11, to: 21)))
        #expect(fractionOfRate(traffic, of: fast, from: 10, to: 20) <= 1.05)
        #expect(fractionOfRate(traffic, of: fast, from: 10.5, to: 11.5) >= 0.8)
    }

    @Test(arguments: [(1_000_000, 1_024), (50_000_000, 100_000)] as [(Int64, Int64)])
    func loweredLimitPermitsNoBurst(fast: Int64, slow: Int64) {
        var traffic = traffic()
        traffic.pacer.setQueueRate(fast)
        traffic.run(until: 10)
        traffic.idle(seconds: 1)
        traffic.pacer.setQueueRate(slow)
        traffic.run(until: 22)
        #expect((0.95...1.05).contains(fractionOfRate(traffic, of: slow, from: 11, to: 21)))
        #expect((0.95...1.05).contains(fractionOfRate(traffic, of: slow, from: 12, to: 22)))
    }

    @Test func appliesNewAndRemovedLimitsImmediately() {
        var traffic = PacedTraffic([.init(network: 10_000_000), .init(network: 10_000_000)])
        traffic.run(until: 2)
        traffic.pacer.setRate(10_000, session: 1)
        traffic.run(until: 12)
        traffic.pacer.setRate(nil, session: 1)
        traffic.run(until: 15)
        #expect(abs(fractionOfRate(traffic, of: 20_000_000, from: 0, to: 2) - 1) < 0.02)
        #expect((0.95...1.05).contains(fractionOfRate(traffic, of: 10_000, from: 2, to: 12)))
        #expect(abs(fractionOfRate(traffic, of: 20_000_000, from: 12.6, to: 15) - 1) < 0.05)
    }

    @Test func settingLimitAgainPermitsNoExtraBytes() {
        var traffic = traffic()
        traffic.pacer.setQueueRate(100_000)
        for tick in 1...200 {
            traffic.run(until: Double(tick) * 0.1)
            switch tick % 3 {
            case 0: traffic.pacer.setQueueRate(100_000)
            case 1: traffic.pacer.setRate(50_000 + Int64(tick), session: 9)
            default: traffic.pacer.forget(session: 9)
            }
        }
        let extremes = traffic.extremes(rate: 100_000)
        #expect(extremes.lowerBound >= 0.95 && extremes.upperBound <= 1.05, "\(extremes)")
    }

    @Test func brieflyLiftedLimitPermitsNoBytes() {
        let traffic = traffic()
        for _ in 0..<1_000 {
            traffic.pacer.setRate(1_000, account: 1)
            #expect(traffic.pacer.allowance(upTo: 100, session: 1, account: 1).bytes == 0)
            traffic.pacer.setRate(nil, account: 1)
        }
    }

    @Test func zeroRateStopsEverything() {
        var traffic = traffic()
        traffic.pacer.setQueueRate(10_000)
        traffic.run(until: 2)
        traffic.pacer.setQueueRate(0)
        traffic.run(until: 12)
        #expect(traffic.bytes(from: 2, to: 12) == 0)
        traffic.pacer.setQueueRate(10_000)
        traffic.run(until: 23)
        #expect((0.95...1.05).contains(fractionOfRate(traffic, of: 10_000, from: 13, to: 23)))
    }

    @Test func removingLimitsDoesNotAffectOtherLimits() {
        let pacer = PacedTraffic([]).pacer
        for session in 1...5 as ClosedRange<SessionKey> { pacer.setRate(1, session: session) }
        for gone in [2, 5, 1] as [SessionKey] { pacer.setRate(nil, session: gone) }
        let isLimited = (1...5).map { pacer.allowance(upTo: 100, session: $0, account: 1).bytes == 0 }
        #expect(isLimited == [false, false, true, true, false])
    }
}
