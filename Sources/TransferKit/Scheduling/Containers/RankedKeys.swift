/// Sessions in the order of their ranks, without the ranks: 8 bytes each, and any change in the middle is local.
///
/// The keys are in chunks. A rank is anything that can be compared. What a key's rank is, the calls that need it ask a closure, which must answer for every key in here, and with
/// different ranks. So a session's rank may change only while its key is out of here, or in a way that keeps the order.
package struct RankedKeys: Sendable {
    typealias Chunk = ContiguousArray<SessionKey>

    /// A chunk that would grow beyond this is split.
    private static let chunkLimit = 1_024
    /// Chunks that are filled at their end, or merged, get no larger than this: room for what is put between.
    private static let chunkFill = chunkLimit / 4 * 3
    /// A chunk that shrinks below this is merged with a neighbour if both fit into one.
    private static let chunkMinimum = chunkLimit / 4

    /// None is empty.
    private(set) var chunks: ContiguousArray<Chunk> = []
    private(set) var counts = PrefixCounts()

    package init() {}

    /// How many sessions there are.
    package var count: Int { counts.total }

    package var isEmpty: Bool { chunks.isEmpty }

    /// The session of the lowest rank.
    package var first: SessionKey? { chunks.first?.first }

    /// The session at an index, which must be in range.
    package subscript(index: Int) -> SessionKey {
        let (chunk, offset) = counts.part(holding: index)
        return chunks[chunk][offset]
    }

    // MARK: Searching

    /// Where a session is; nil if it is not in here. The rank of one that is not may be anything.
    package func index<Rank: Comparable>(of key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let place = place(of: key, rank: rank) else { return nil }
        return counts.count(before: place.chunk) + place.offset
    }

    package func contains<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Bool {
        place(of: key, rank: rank) != nil
    }

    /// The index that a session of this rank would get: how many there are of lower ranks.
    package func insertionIndex<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Int {
        let place = place(forRank: wanted, rank: rank)
        return counts.count(before: place.chunk) + place.offset
    }

    // MARK: Changing

    /// Puts a session where its rank says; it must not be in here yet. Returns the index that it got.
    @discardableResult
    package mutating func insert<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Int {
        let wanted = rank(key)
        if let last = chunks.last?.last, rank(last) < wanted {
            append(key)
            return count - 1
        }
        var place = place(forRank: wanted, rank: rank)
        let index = counts.count(before: place.chunk) + place.offset
        guard index < count else {
            append(key)
            return index
        }
        if chunks[place.chunk].count == Self.chunkLimit {
            let middle = split(place.chunk)
            if place.offset > middle { place = Place(chunk: place.chunk + 1, offset: place.offset - middle) }
        }
        // An array left to itself would double.
        chunks[place.chunk].reserveCapacity(Self.chunkLimit)
        chunks[place.chunk].insert(key, at: place.offset)
        counts.add(1, toPart: place.chunk)
        return index
    }

    /// Adds a session whose rank is higher than any in here.
    package mutating func append(_ key: SessionKey) {
        if let last = chunks.indices.last, chunks[last].count < Self.chunkFill {
            chunks[last].append(key)
            counts.add(1, toPart: last)
        } else {
            var chunk = Chunk()
            chunk.reserveCapacity(Self.chunkFill)
            chunk.append(key)
            chunks.append(chunk)
            counts.append(1)
        }
    }

    /// Takes a session out, while its rank is still known. Returns the index that it had; nil if it is not in here.
    @discardableResult
    package mutating func remove<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let place = place(of: key, rank: rank) else { return nil }
        let index = counts.count(before: place.chunk) + place.offset
        remove(at: place)
        return index
    }

    /// Takes out the session at an index, which must be in range.
    @discardableResult
    package mutating func remove(at index: Int) -> SessionKey {
        let (chunk, offset) = counts.part(holding: index)
        return remove(at: Place(chunk: chunk, offset: offset))
    }

    // MARK: Chunks

    private struct Place {
        var chunk: Int
        var offset: Int
    }

    private func place<Rank: Comparable>(of key: SessionKey, rank: (SessionKey) -> Rank) -> Place? {
        let place = place(forRank: rank(key), rank: rank)
        guard chunks.indices.contains(place.chunk), chunks[place.chunk].indices.contains(place.offset) else { return nil }
        return chunks[place.chunk][place.offset] == key ? place : nil
    }

    /// Where the first of a rank not below this one is or would be: at the end of its chunk rather than at the start of the next.
    private func place<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Place {
        let following = chunks.partitionPoint { rank($0[0]) > wanted }
        guard following > 0 else { return Place(chunk: 0, offset: 0) }
        return Place(chunk: following - 1, offset: chunks[following - 1].partitionPoint { rank($0) >= wanted })
    }

    /// Makes two of a chunk; returns how many keys stay in the first.
    private mutating func split(_ chunk: Int) -> Int {
        let middle = chunks[chunk].count / 2
        let second = Chunk(chunks[chunk][middle...])
        chunks[chunk].removeSubrange(middle...)
        chunks.insert(second, at: chunk + 1)
        counts = PrefixCounts(chunks.lazy.map(\.count))
        return middle
    }

    @discardableResult
    private mutating func remove(at place: Place) -> SessionKey {
        let key = chunks[place.chunk].remove(at: place.offset)
        counts.add(-1, toPart: place.chunk)
        if chunks[place.chunk].isEmpty {
            chunks.remove(at: place.chunk)
            counts = PrefixCounts(chunks.lazy.map(\.count))
        } else if chunks[place.chunk].count < Self.chunkMinimum {
            if !merge(place.chunk - 1) { _ = merge(place.chunk) }
        }
        return key
    }

    /// Makes one of a chunk and the next, if there are two and they fit.
    private mutating func merge(_ chunk: Int) -> Bool {
        guard chunk >= 0, chunk + 1 < chunks.count, chunks[chunk].count + chunks[chunk + 1].count <= Self.chunkFill else { return false }
        let second = chunks.remove(at: chunk + 1)
        chunks[chunk].reserveCapacity(Self.chunkFill)
        chunks[chunk].append(contentsOf: second)
        counts = PrefixCounts(chunks.lazy.map(\.count))
        return true
    }
}

extension ContiguousArray {
    /// The index of the first element for which the predicate holds, if it holds for none before and all after that one; else `endIndex`.
    fileprivate func partitionPoint(where belongsAfter: (Element) -> Bool) -> Int {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = low + (high - low) / 2
            if belongsAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
