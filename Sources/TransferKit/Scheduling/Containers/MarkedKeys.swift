/// The sessions of a line that go before the order of the queue, by their standings.
///
/// What those are, the calls ask a closure, which must answer for every key in here. What is marked anew mostly goes before all others.
struct MarkedKeys: Sendable, Equatable {
    typealias Standing = Roster.Standing

    /// The last goes first, so that one that goes before all others is appended.
    private(set) var keys: [SessionKey] = []

    var isEmpty: Bool { keys.isEmpty }
    var first: SessionKey? { keys.last }

    mutating func insert(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        keys.insert(key, at: place(of: standing(key), standing))
    }

    /// Takes a session out, while its standing is still known.
    mutating func remove(_ key: SessionKey, standing: (SessionKey) -> Standing) {
        let place = place(of: standing(key), standing)
        guard place < keys.count, keys[place] == key else { return }
        keys.remove(at: place)
    }

    /// The last session that goes before a standing.
    func last(before wanted: Standing, leavingOut key: SessionKey, standing: (SessionKey) -> Standing) -> SessionKey? {
        var place = place(of: wanted, standing)
        while place < keys.count {
            if keys[place] != key, standing(keys[place]) < wanted { return keys[place] }
            place += 1
        }
        return nil
    }

    /// Where one of that standing is, or would be put: behind all that go after it.
    private func place(of wanted: Standing, _ standing: (SessionKey) -> Standing) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if wanted < standing(keys[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
