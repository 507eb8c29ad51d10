/// The sessions of a line that go before the order of the queue, by their standings.
///
/// What those are, the calls ask a closure, which must answer for every key in here. However many are marked at once, one more costs little.
struct MarkedKeys: Sendable, Equatable {
    typealias Standing = Roster.Standing

    private(set) var keys = RankedKeys()

    var isEmpty: Bool { keys.isEmpty }
    var first: SessionKey? { keys.first }
    var count: Int { keys.count }

    mutating func insert(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        keys.insert(key, rank: standing)
    }

    /// Takes a session out, while its standing is still known.
    mutating func remove(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        keys.remove(key, rank: standing)
    }

    /// How many sessions go before a standing.
    func count(before wanted: Standing, standing: (SessionKey) -> Standing) -> Int {
        keys.insertionIndex(forRank: wanted, rank: standing)
    }
}
