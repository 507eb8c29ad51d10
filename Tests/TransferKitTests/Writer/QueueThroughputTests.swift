import Testing
import TransferKit

@Suite struct QueueThroughputTests {
    @Test func addsUpRatesOfConcurrentRuns() throws {
        let throughput = QueueThroughput()
        throughput.begin(1, at: .zero)
        throughput.begin(2, at: .zero)
        for tick in 1...100 {
            throughput.sample(1, moved: Int64(tick) * 100, at: .milliseconds(100 * tick))
            throughput.sample(2, moved: Int64(tick) * 300, at: .milliseconds(100 * tick + 50))
        }
        let rate = try #require(throughput.rate(at: .milliseconds(10_050)))
        #expect(abs(rate - 4_000) < 100)
    }

    @Test func addsUpRatesOfConsecutiveShortRuns() throws {
        let throughput = QueueThroughput()
        for run in 1...1_000 {
            throughput.begin(UInt64(run), at: .milliseconds(10 * run))
            throughput.end(UInt64(run), moved: 50, at: .milliseconds(10 * run + 10))
        }
        throughput.begin(2_000, at: .milliseconds(10_010))
        let rate = try #require(throughput.rate(at: .milliseconds(10_010)))
        #expect(abs(rate - 5_000) < 1)
    }

    @Test func ignoresRateOfAnHourAgo() {
        let throughput = QueueThroughput()
        throughput.begin(1, at: .zero)
        throughput.sample(1, moved: 1_000_000, at: .seconds(1))
        throughput.end(1, moved: 2_000_000, at: .seconds(2))
        #expect(throughput.rate(at: .seconds(2)) == nil, "no session is running")
        throughput.begin(2, at: .seconds(3_600))
        #expect(throughput.rate(at: .seconds(3_600)) == nil)
        throughput.sample(2, moved: 10, at: .seconds(3_601))
        #expect(throughput.rate(at: .seconds(3_601)) == 10)
    }
}
