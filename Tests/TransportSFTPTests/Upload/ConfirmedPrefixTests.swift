import Testing
import TransportSFTP

@Suite(.timeLimit(.minutes(10))) struct ConfirmedPrefixTests {
    private static let rangeSize: Int64 = 32_640

    private func range(_ number: Int64) -> Range<Int64> { number * Self.rangeSize..<(number + 1) * Self.rangeSize }

    @Test func mergesRangesAfterGap() {
        var prefix = ConfirmedPrefix(from: 0)
        for number in 1..<100_000 as Range<Int64> { prefix.insert(range(number)) }
        #expect(prefix.end == 0 && prefix.islandCount == 1)
        prefix.insert(range(0))
        #expect(prefix.end == 100_000 * Self.rangeSize && prefix.islandCount == 0)
    }

    @Test(arguments: 0..<50) func acceptsRangesInAnyOrder(seed: UInt64) {
        var generator = Generator(state: seed)
        let count = Int64.random(in: 1...300, using: &generator)
        var prefix = ConfirmedPrefix(from: 0)
        var confirmed: Set<Int64> = []
        for number in (0..<count).shuffled(using: &generator) {
            // The same range may be confirmed again.
            for _ in 0...Int.random(in: 0...1, using: &generator) { prefix.insert(range(number)) }
            confirmed.insert(number)
            let expected = (0...count).first { !confirmed.contains($0) } ?? count
            #expect(prefix.end == expected * Self.rangeSize)
            let gaps = confirmed.filter { $0 > expected && !confirmed.contains($0 - 1) }.count
            #expect(prefix.islandCount == gaps)
        }
    }
}
