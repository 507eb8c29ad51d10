/// The sessions with a start priority, sorted by standing (``SessionIndex/Standing``). They start before the sessions in queue order. A
/// collection covers one line or all lines.
///
/// Calls take a closure that returns the standing of any key in the collection.
struct PrioritizedKeys: Sendable, Equatable {
    typealias Standing = SessionIndex.Standing

    private(set) var keys = RankedKeys()

    var isEmpty: Bool { keys.isEmpty }
    var first: SessionKey? { keys.first }
    var count: Int { keys.count }

    mutating func insert(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        keys.insert(key, rank: standing)
    }

    /// Removes a session. The closure must still return the standing that the session had in the collection.
    mutating func remove(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        keys.remove(key, rank: standing)
    }

    /// The number of sessions that start before a session with the given standing.
    func count(before wanted: Standing, standing: (SessionKey) -> Standing) -> Int {
        keys.insertionIndex(forRank: wanted, rank: standing)
    }
}
