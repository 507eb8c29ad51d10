import Locking
import Testing
import TransportSFTP

struct RecentBlocksTests {
    private static let size: Int64 = 4 << 20

    @Test func returnsNewestBlockOfEachRangeFirst() {
        let size = Self.size
        let blocks = RecentBlocks([0..<2 * size + 1, 7..<7, 10 * size..<10 * size + 5])
        var found: [Range<Int64>] = []
        while let block = blocks.next() { found.append(block) }
        #expect(found == [size + 1..<2 * size + 1, 10 * size..<10 * size + 5, 1..<size + 1, 0..<1])
    }

    @Test func returnsNoBlocksAfterOneMinute() {
        let start = ContinuousClock.now
        let elapsed = Locked(Duration.zero)
        let blocks = RecentBlocks([0..<Int64.max], now: { start + elapsed.withLock { $0 } })
        elapsed.withLock { $0 = .seconds(59) }
        #expect(blocks.next() == Int64.max - Self.size..<Int64.max)
        elapsed.withLock { $0 = .seconds(60) }
        #expect(blocks.next() == nil)
    }
}
