import Testing
import TransferCore
import TransferKit

@Suite struct PacerSharingTests {
    private func share(_ traffic: PacedTraffic, _ session: SessionKey) -> Double {
        Double(traffic.bytes(of: { $0.session == session }, from: 2, to: traffic.now)) / Double(traffic.bytes(from: 2, to: traffic.now))
    }

    @Test(arguments: [1 << 10, 100_000, 1 << 20, 50 << 20] as [Int64])
    func sessionsGetEqualShares(rate: Int64) {
        let many = Array(repeating: PacedTraffic.File(session: 1, readSize: 65_536, lateness: 0), count: 6)
        var traffic = PacedTraffic(
            many + [.init(session: 2, readSize: 16_384, lateness: 10), .init(session: 3, account: 2, readSize: 32_768)])
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 12)
        for session in [1, 2, 3] as [SessionKey] {
            #expect(abs(share(traffic, session) - 1.0 / 3) < 0.03, "\(session): \(share(traffic, session))")
        }
    }

    @Test(arguments: [1 << 10, 100_000, 1 << 20, 100 << 20] as [Int64], [2, 6, 16])
    func filesOfSessionTakeTurns(rate: Int64, count: Int) {
        // The first file is always slightly faster than the other files.
        let files = (0..<count).map { PacedTraffic.File(lateness: $0 == 0 ? 0 : 2) }
        var traffic = PacedTraffic(files)
        traffic.pacer.setRate(rate, session: 1)
        traffic.run(until: 12)
        let total = traffic.bytes(from: 2, to: 12)
        for file in files.indices {
            let moved = traffic.ledger[file].dropFirst(200).reduce(0, +)
            let fair = Double(total) / Double(count)
            #expect((0.5...2).contains(Double(moved) / fair), "file \(file): \(moved) of \(fair)")
        }
    }

    @Test(arguments: [20_000, 2_000_000] as [Int64])
    func unusedShareGoesToOtherSessions(rate: Int64) {
        let slow = PacedTraffic.File(session: 1, readSize: 16_384, network: Double(rate) / 10)
        var traffic = PacedTraffic([slow, .init(session: 2), .init(session: 3)])
        traffic.pacer.setQueueRate(rate)
        traffic.run(until: 42)
        #expect(traffic.extremes(rate: rate).lowerBound >= 0.95)
        #expect(abs(share(traffic, 2) - 0.45) < 0.06, "\(share(traffic, 2))")
        #expect(abs(share(traffic, 3) - 0.45) < 0.06, "\(share(traffic, 3))")
    }

    @Test func otherSessionsShareRateLeftByLimitedSession() {
        var traffic = PacedTraffic([.init(session: 1), .init(session: 2), .init(session: 2), .init(session: 3)])
        traffic.pacer.setQueueRate(1_000_000)
        traffic.pacer.setRate(100_000, session: 1)
        traffic.run(until: 22)
        #expect(abs(share(traffic, 1) - 0.1) < 0.01)
        #expect(abs(share(traffic, 2) - 0.45) < 0.03)
        #expect(abs(share(traffic, 3) - 0.45) < 0.03)
    }

    @Test func forgettingSessionRemovesItsLimit() {
        let pacer = PacedTraffic([]).pacer
        pacer.setQueueRate(1_000)
        pacer.setRate(10, session: 1)
        #expect(pacer.allowance(upTo: 100, session: 1, account: 1).bytes == 0)
        pacer.forget(session: 1)
        pacer.setQueueRate(nil)
        #expect(pacer.allowance(upTo: 100, session: 1, account: 1).bytes == 100)
    }

    @Test func limitOfOtherAccountHasNoEffect() {
        let pacer = PacedTraffic([]).pacer
        pacer.setRate(10, account: 2)
        pacer.setRate(10, session: 7)
        #expect(pacer.allowance(upTo: 65_536, session: 1, account: 1) == Allowance(bytes: 65_536))
        #expect(pacer.allowance(upTo: 65_536, session: 1, account: 2).bytes < 65_536)
        #expect(pacer.allowance(upTo: 65_536, session: 7, account: 1).bytes < 65_536)
        pacer.forget(account: 2)
        #expect(pacer.allowance(upTo: 65_536, session: 1, account: 2) == Allowance(bytes: 65_536))
    }
}
