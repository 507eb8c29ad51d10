import Testing
import TransferKit

@Suite struct RankedKeysTests {
    @Test(arguments: [0, 1, 2, 767, 768, 769, 1_023, 1_024, 1_025, 5_000], 0..<2)
    func matchesModelForRandomChanges(size: Int, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var model = RankedKeysModel()
        for _ in 0..<size { model.append() }
        try model.check("size \(size), appended")
        for step in 0..<3_000 {
            try model.randomChange(using: &random, favoursInsertion: (step / 500).isMultiple(of: 2))
            try model.spotCheck(using: &random, "size \(size), seed \(seed), step \(step)")
            if step.isMultiple(of: 500) { try model.check("size \(size), seed \(seed), step \(step)") }
        }
        try model.check("size \(size), seed \(seed), at the end")
    }

    @Test func matchesModelForChangesAtFront() throws {
        var model = RankedKeysModel()
        for _ in 0..<5_000 { try #require(model.insert(at: 0) == 0) }
        try model.check("inserted")
        for _ in 0..<4_999 { try model.remove(at: 0) }
        try model.check("removed")
    }

    @Test func matchesModelForChangesAtSameIndex() throws {
        var model = RankedKeysModel()
        for _ in 0..<2_000 { model.append() }
        for _ in 0..<5_000 { try #require(model.insert(at: 1_000) == 1_000) }
        try model.check("inserted")
        for _ in 0..<5_000 { try model.remove(at: 1_000) }
        try model.check("removed")
    }

    @Test func matchesModelForChangesAtAlternateEnds() throws {
        var model = RankedKeysModel()
        for number in 0..<5_000 {
            let index = number.isMultiple(of: 2) ? 0 : model.order.count
            try #require(model.insert(at: index) == index)
        }
        try model.check("inserted")
        for number in 0..<5_000 { try model.remove(at: number.isMultiple(of: 2) ? 0 : model.order.count - 1) }
        try model.check("removed")
        #expect(model.keys.isEmpty && model.keys.first == nil)
    }

    @Test func matchesModelForChangesAroundBlockBoundary() throws {
        var model = RankedKeysModel()
        for _ in 0..<768 { model.append() }
        for _ in 0..<50 {
            model.append()
            model.append()
            try model.remove(at: 769)
            try model.remove(at: 767)
            model.append()
            try model.remove(at: 0)
            try model.check("around the end")
        }
    }

    @Test(arguments: 0..<3)
    func canBeRefilledAfterDeletingAllKeys(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var model = RankedKeysModel()
        for _ in 0..<2 {
            for _ in 0..<4_000 { _ = model.insert(at: Int.random(in: 0...model.order.count, using: &random)) }
            try model.check("filled")
            while !model.order.isEmpty { try model.remove(at: Int.random(in: model.order.indices, using: &random)) }
            try model.check("emptied")
        }
    }

    @Test func changesAtFrontNeedLittleWork() {
        let count = 300_000
        var lookUps = 0
        var keys = RankedKeys()
        for number in 1...count {
            keys.insert(SessionKey(count - number)) { key in
                lookUps += 1
                return key
            }
        }
        // An insertion reads at most 40 ranks: twice the binary logarithm of the number of keys, plus the ranks of the new and the last key.
        #expect(lookUps <= count * 40 && keys.largestBlock <= 1_024, "\(lookUps)")
        lookUps = 0
        for number in 0..<count {
            keys.remove(SessionKey(number)) { key in
                lookUps += 1
                return key
            }
        }
        #expect(lookUps <= count * 40 && keys.isEmpty, "\(lookUps)")
    }

    @Test func equalityComparesContent() {
        let keys: [SessionKey] = Array(1...3_000)
        var appended = RankedKeys()
        for key in keys { appended.append(key) }
        var inserted = RankedKeys()
        for key in keys.reversed() { inserted.insert(key) { $0 } }
        #expect(inserted == appended)
        #expect(inserted.remove(at: 1_500) == 1_501)
        #expect(inserted != appended)
        #expect(inserted.insert(1_501) { $0 } == 1_500)
        #expect(inserted == appended)
        var others = appended
        others.remove(at: 10)
        others.append(3_001)
        #expect(others != appended)
    }

    @Test func copiesAreIndependent() {
        var keys = RankedKeys()
        for key in 1...2_000 as ClosedRange<SessionKey> { keys.append(key) }
        let copy = keys
        let slice = keys.keys(in: 500..<1_500)
        for _ in 0..<1_000 { keys.remove(at: 300) }
        keys.insert(0) { $0 }
        #expect(copy.elementsEqual(1...2_000))
        #expect(slice.elementsEqual(501...1_500))
    }

    @Test func eachOperationReadsFewRanks() {
        var keys = RankedKeys()
        for key in 1...100_000 as ClosedRange<SessionKey> { keys.append(key * 2) }
        var reads = 0
        let rank = { (key: SessionKey) in
            reads += 1
            return key
        }
        #expect(keys.index(of: 77_778, rank: rank) == 38_888)
        #expect(keys.insert(100_001, rank: rank) == 50_000)
        #expect(keys.remove(100_001, rank: rank) == 50_000)
        #expect(reads <= 3 * 20, "Each operation reads about log2(100,000) ranks.")
    }

    /// A group call such as `runNext` for all sessions inserts each session before or after all earlier ones.
    @Test(arguments: [true, false]) func insertionsAtOneEndReadFewRanks(isFront: Bool) {
        var keys = RankedKeys()
        var reads = 0
        let rank = { (key: SessionKey) in
            reads += 1
            return isFront ? -key : key
        }
        for key in 1...100_000 as ClosedRange<SessionKey> { keys.insert(key, rank: rank) }
        let insertionReads = reads
        #expect(insertionReads <= 40 * 100_000, "\(insertionReads)")
        for key in 1...100_000 as ClosedRange<SessionKey> { keys.remove(key, rank: rank) }
        #expect(reads - insertionReads <= 40 * 100_000 && keys.isEmpty, "\(reads - insertionReads)")
    }
}
