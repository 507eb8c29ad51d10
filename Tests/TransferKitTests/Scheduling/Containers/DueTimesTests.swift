import Testing
import TransferKit

@Suite struct DueTimesTests {
    @Test(arguments: 0..<10)
    func returnsEarliestTimeFirst(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var times = DueTimes()
        var reference: [(due: Int64, key: SessionKey)] = []
        try #require(times.first == nil && times.popFirst() == nil)
        for step in 0..<2_000 {
            let context: Comment = "seed \(seed), step \(step)"
            // Uses few distinct values, so that many elements have the same due time and some are equal.
            if Int.random(in: 0..<5, using: &random) < (step < 1_000 ? 3 : 2) {
                let due = Int64.random(in: -20...20, using: &random)
                let key = SessionKey.random(in: 1...5, using: &random)
                times.insert(due: due, key: key)
                reference.append((due, key))
                reference.sort { $0 < $1 }
            } else {
                let earliest = times.popFirst()
                let expected = reference.isEmpty ? nil : reference.removeFirst()
                try #require(earliest?.due == expected?.due && earliest?.key == expected?.key, context)
            }
            try #require(times.first?.due == reference.first?.due && times.first?.key == reference.first?.key, context)
            try #require(times.count == reference.count, context)
        }
    }

    @Test func equalityComparesContent() {
        var times = DueTimes()
        for due: Int64 in [3, 1, 2, 2] { times.insert(due: due, key: 1) }
        var others = DueTimes()
        for due: Int64 in [0, 2, 3, 2, 1] { others.insert(due: due, key: 1) }
        #expect(times != others)
        _ = others.popFirst()
        #expect(times == others)
        others.insert(due: 4, key: 1)
        times.insert(due: 4, key: 2)
        #expect(times != others)
    }
}
