import Testing
import TransferKit

@Suite struct PrefixCountsTests {
    @Test(arguments: [1, 2, 3, 4, 7, 8, 9, 100, 1_023, 1_024, 1_025], 0..<3)
    func countsAreCorrectAfterRandomChanges(size: Int, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        // Some blocks are empty, including adjacent ones.
        var reference = (0..<size).map { _ in max(0, Int.random(in: -1...3, using: &random)) }
        var counts = PrefixCounts(reference)
        for _ in 0..<20 {
            let block = Int.random(in: 0..<size, using: &random)
            let count = Int.random(in: 0...5, using: &random)
            counts.add(count - reference[block], toBlock: block)
            reference[block] = count
            reference.append(count)
            counts.append(count)
        }
        try #require(counts.total == reference.reduce(0, +))
        var index = 0
        for (block, count) in reference.enumerated() {
            try #require(counts.count(before: block) == index)
            for offset in 0..<count {
                let found = counts.block(holding: index)
                try #require(found.block == block && found.offset == offset)
                index += 1
            }
        }
        try #require(counts.count(before: reference.count) == index)
    }
}
