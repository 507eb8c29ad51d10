/// Sessions sorted by rank. Stores only their keys (8 bytes each), in chunks, so insertions and removals move few keys.
///
/// A rank is any comparable value. Calls that need ranks take a closure that returns the rank of any key in the collection; ranks must be
/// distinct. While a session's key is in the collection, its rank may change only if the order stays the same.
package struct RankedKeys: Sendable {
    typealias Chunk = ContiguousArray<SessionKey>

    /// The maximum size of a chunk. A full chunk is split before an insertion.
    private static let chunkLimit = 1_024
    /// The maximum size of a chunk after an append or a merge. Leaves room for insertions.
    private static let chunkFill = chunkLimit / 4 * 3
    /// A chunk that shrinks below this size is merged with a neighbour if both fit into one.
    private static let chunkMinimum = chunkLimit / 4

    /// The chunks; none is empty.
    private(set) var chunks: ContiguousArray<Chunk> = []
    private(set) var counts = PrefixCounts()

    package init() {}

    /// The number of sessions.
    package var count: Int { counts.total }

    package var isEmpty: Bool { chunks.isEmpty }

    /// The maximum number of keys that an insertion or a removal moves.
    package var largestPart: Int { chunks.map(\.count).max() ?? 0 }

    /// The session with the lowest rank.
    package var first: SessionKey? { chunks.first?.first }

    /// The session at an index, which must be in range.
    package subscript(index: Int) -> SessionKey {
        let (chunk, offset) = counts.part(holding: index)
        return chunks[chunk][offset]
    }

    // MARK: Searching

    /// The index of a session; nil if it is not in the collection. The closure may return any rank for a missing session.
    package func index<Rank: Comparable>(of key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let place = place(of: key, rank: rank) else { return nil }
        return counts.count(before: place.chunk) + place.offset
    }

    package func contains<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Bool {
        place(of: key, rank: rank) != nil
    }

    /// The index that a session with this rank would get, which is the number of sessions with lower ranks.
    package func insertionIndex<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Int {
        let place = place(forRank: wanted, rank: rank)
        return counts.count(before: place.chunk) + place.offset
    }

    // MARK: Changing

    /// Inserts a session at the position of its rank, and returns its index. The session must not be in the collection yet.
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
        // Without this reservation, the array would double its capacity.
        chunks[place.chunk].reserveCapacity(Self.chunkLimit)
        chunks[place.chunk].insert(key, at: place.offset)
        counts.add(1, toPart: place.chunk)
        return index
    }

    /// Adds a session whose rank is higher than all ranks in the collection.
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

    /// Removes a session. The closure must still return the rank that the session had in the collection.
    ///
    /// - Returns: The session's former index; nil if it is not in the collection.
    @discardableResult
    package mutating func remove<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let place = place(of: key, rank: rank) else { return nil }
        let index = counts.count(before: place.chunk) + place.offset
        remove(at: place)
        return index
    }

    /// Removes the session at an index, which must be in range.
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

    /// The chunk and offset of the session with the wanted rank, or the position at which such a session belongs. Between two chunks, this
    /// is the end of the first chunk.
    private func place<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Place {
        let following = chunks.partitionPoint { rank($0[0]) > wanted }
        guard following > 0 else { return Place(chunk: 0, offset: 0) }
        return Place(chunk: following - 1, offset: chunks[following - 1].partitionPoint { rank($0) >= wanted })
    }

    /// Splits a chunk into two chunks. Returns the number of keys that stay in the first chunk.
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

    /// Merges a chunk with the next chunk, if there is a next chunk and both fit into one.
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
    /// The index of the first element that satisfies the predicate, or `endIndex`. The predicate must be false for all elements before this
    /// index, and true for all elements after it.
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
