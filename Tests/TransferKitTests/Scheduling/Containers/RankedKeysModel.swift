import Testing
import TransferKit

/// A ``RankedKeys`` and a plain array that receive the same operations, so that tests can compare them.
struct RankedKeysModel {
    private(set) var keys = RankedKeys()
    private(set) var order: [SessionKey] = []
    private(set) var ranks: [SessionKey: Int64] = [:]
    private var lastKey: SessionKey = 0

    func rank(_ key: SessionKey) -> Int64 {
        ranks[key] ?? .min
    }

    mutating func append() {
        let key = newKey(at: order.count)
        keys.append(key)
        order.append(key)
    }

    mutating func insert(at index: Int) -> Int {
        let key = newKey(at: index)
        order.insert(key, at: index)
        return keys.insert(key) { [ranks] in ranks[$0] ?? .min }
    }

    mutating func remove(at index: Int) throws {
        let key = keys.remove(at: index)
        try #require(key == order.remove(at: index))
    }

    mutating func removeByKey(at index: Int) throws {
        let key = order.remove(at: index)
        for expected in [index, nil] {
            let removed = keys.remove(key) { [ranks] in ranks[$0] ?? .min }
            try #require(removed == expected)
        }
    }

    mutating func randomChange(using random: inout SplitMix64, favoursInsertion: Bool) throws {
        if order.isEmpty || (Int.random(in: 0..<4, using: &random) == 0) != favoursInsertion {
            let index = Int.random(in: 0...order.count, using: &random)
            let inserted = insert(at: index)
            try #require(inserted == index)
        } else if Bool.random(using: &random) {
            try removeByKey(at: Int.random(in: order.indices, using: &random))
        } else {
            try remove(at: Int.random(in: order.indices, using: &random))
        }
    }

    func spotCheck(using random: inout SplitMix64, _ context: Comment) throws {
        try #require(keys.count == order.count, context)
        try #require(keys.isEmpty == order.isEmpty, context)
        try #require(keys.first == order.first, context)
        guard let index = order.indices.randomElement(using: &random) else { return }
        let key = order[index]
        try #require(keys[index] == key, context)
        try #require(keys.index(of: key, rank: rank) == index, context)
        try #require(keys.contains(key, rank: rank), context)
        try #require(keys.insertionIndex(forRank: rank(key), rank: rank) == index, context)
        try #require(keys.insertionIndex(forRank: rank(key) + 1, rank: rank) == index + 1, context)
        let end = Int.random(in: index...order.count, using: &random)
        try #require(keys.keys(in: index..<end).elementsEqual(order[index..<end]), context)
    }

    func check(_ context: Comment) throws {
        try #require(Array(keys) == order, context)
        try #require(keys.count == order.count, context)
        for (index, key) in order.enumerated() {
            try #require(keys[index] == key, context)
            try #require(keys.index(of: key, rank: rank) == index, context)
        }
        for missing: SessionKey in [0, lastKey + 1] {
            try #require(keys.index(of: missing, rank: rank) == nil, context)
            try #require(keys.index(of: missing) { ranks[$0] ?? .max } == nil, context)
        }
        try #require(keys.insertionIndex(forRank: .min, rank: rank) == 0, context)
        try #require(keys.insertionIndex(forRank: .max, rank: rank) == order.count, context)
        try #require(Array(keys.keys(in: order.count..<order.count)).isEmpty, context)
    }

    /// Returns a new key whose rank lies between the ranks of its neighbours. Renumbers all keys if the ranks are too close.
    private mutating func newKey(at index: Int) -> SessionKey {
        lastKey += 1
        if index > 0, index < order.count, rank(order[index]) - rank(order[index - 1]) < 2 {
            for (number, key) in order.enumerated() { ranks[key] = Int64(number) << 32 }
        }
        let before = index > 0 ? rank(order[index - 1]) : order.first.map { rank($0) - (2 << 32) } ?? 0
        let after = index < order.count ? rank(order[index]) : before + (2 << 32)
        ranks[lastKey] = before + (after - before) / 2
        return lastKey
    }
}
