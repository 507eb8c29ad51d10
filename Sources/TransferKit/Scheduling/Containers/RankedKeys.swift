/// Sessions sorted by rank. Stores only their keys (8 bytes each), in blocks, so insertions and removals move few keys.
///
/// A rank is any comparable value. Calls that need ranks take a closure that returns the rank of any key in the collection; ranks must be
/// distinct. While a session's key is in the collection, its rank may change only if the order stays the same.
package struct RankedKeys: Sendable {
    typealias Block = ContiguousArray<SessionKey>

    /// The maximum size of a block. A full block is split before an insertion.
    private static let blockLimit = 1_024
    /// The maximum size of a block after an append or a merge. Leaves room for insertions.
    private static let blockFill = blockLimit / 4 * 3
    /// A block that shrinks below this size is merged with a neighbour if the merged block is not larger than ``blockFill``.
    private static let blockMinimum = blockLimit / 4

    /// The blocks; none is empty.
    private(set) var blocks: ContiguousArray<Block> = []
    private(set) var counts = PrefixCounts()

    package init() {}

    package var count: Int { counts.total }

    package var isEmpty: Bool { blocks.isEmpty }

    /// The maximum number of keys that an insertion or a removal moves.
    package var largestBlock: Int { blocks.map(\.count).max() ?? 0 }

    package var first: SessionKey? { blocks.first?.first }

    /// The session at an index, which must be in range.
    package subscript(index: Int) -> SessionKey {
        let (block, offset) = counts.block(holding: index)
        return blocks[block][offset]
    }

    // MARK: Searching

    /// The index of a session; nil if it is not in the collection. The closure may return any rank for a missing session.
    package func index<Rank: Comparable>(of key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let location = location(of: key, rank: rank) else { return nil }
        return counts.count(before: location.block) + location.offset
    }

    package func contains<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Bool {
        location(of: key, rank: rank) != nil
    }

    /// The index that a session with this rank would get, which is the number of sessions with lower ranks.
    package func insertionIndex<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Int {
        let location = location(forRank: wanted, rank: rank)
        return counts.count(before: location.block) + location.offset
    }

    // MARK: Changing

    /// Inserts a session at the position of its rank, and returns its index. The session must not be in the collection yet.
    @discardableResult
    package mutating func insert<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Int {
        let wanted = rank(key)
        if let last = blocks.last?.last, rank(last) < wanted {
            append(key)
            return count - 1
        }
        var location = location(forRank: wanted, rank: rank)
        let index = counts.count(before: location.block) + location.offset
        guard index < count else {
            append(key)
            return index
        }
        if blocks[location.block].count == Self.blockLimit {
            let middle = split(location.block)
            if location.offset > middle { location = Location(block: location.block + 1, offset: location.offset - middle) }
        }
        // Without this reservation, the array would double its capacity.
        blocks[location.block].reserveCapacity(Self.blockLimit)
        blocks[location.block].insert(key, at: location.offset)
        counts.add(1, toBlock: location.block)
        return index
    }

    /// Adds a session whose rank is higher than all ranks in the collection.
    package mutating func append(_ key: SessionKey) {
        if let last = blocks.indices.last, blocks[last].count < Self.blockFill {
            blocks[last].append(key)
            counts.add(1, toBlock: last)
        } else {
            var block = Block()
            block.reserveCapacity(Self.blockFill)
            block.append(key)
            blocks.append(block)
            counts.append(1)
        }
    }

    /// Removes a session. The closure must still return the rank that the session had in the collection.
    ///
    /// - Returns: The session's former index; nil if it is not in the collection.
    @discardableResult
    package mutating func remove<Rank: Comparable>(_ key: SessionKey, rank: (SessionKey) -> Rank) -> Int? {
        guard let location = location(of: key, rank: rank) else { return nil }
        let index = counts.count(before: location.block) + location.offset
        remove(at: location)
        return index
    }

    /// Removes the session at an index, which must be in range.
    @discardableResult
    package mutating func remove(at index: Int) -> SessionKey {
        let (block, offset) = counts.block(holding: index)
        return remove(at: Location(block: block, offset: offset))
    }

    // MARK: Blocks

    private struct Location {
        var block: Int
        var offset: Int
    }

    private func location<Rank: Comparable>(of key: SessionKey, rank: (SessionKey) -> Rank) -> Location? {
        let location = location(forRank: rank(key), rank: rank)
        guard blocks.indices.contains(location.block), blocks[location.block].indices.contains(location.offset) else { return nil }
        return blocks[location.block][location.offset] == key ? location : nil
    }

    /// The block and offset of the session with the wanted rank, or the position at which such a session belongs. A position
    /// between two blocks is given as the end of the first block.
    private func location<Rank: Comparable>(forRank wanted: Rank, rank: (SessionKey) -> Rank) -> Location {
        let following = blocks.partitionPoint { rank($0[0]) > wanted }
        guard following > 0 else { return Location(block: 0, offset: 0) }
        return Location(block: following - 1, offset: blocks[following - 1].partitionPoint { rank($0) >= wanted })
    }

    /// Splits a block into two blocks. Returns the number of keys that stay in the first block.
    private mutating func split(_ block: Int) -> Int {
        let middle = blocks[block].count / 2
        let second = Block(blocks[block][middle...])
        blocks[block].removeSubrange(middle...)
        blocks.insert(second, at: block + 1)
        counts = PrefixCounts(blocks.lazy.map(\.count))
        return middle
    }

    @discardableResult
    private mutating func remove(at location: Location) -> SessionKey {
        let key = blocks[location.block].remove(at: location.offset)
        counts.add(-1, toBlock: location.block)
        if blocks[location.block].isEmpty {
            blocks.remove(at: location.block)
            counts = PrefixCounts(blocks.lazy.map(\.count))
        } else if blocks[location.block].count < Self.blockMinimum {
            if !merge(location.block - 1) { _ = merge(location.block) }
        }
        return key
    }

    /// Merges a block with the next block, if both exist and the merged block is not larger than ``blockFill``. Returns whether it merged them.
    private mutating func merge(_ block: Int) -> Bool {
        guard block >= 0, block + 1 < blocks.count, blocks[block].count + blocks[block + 1].count <= Self.blockFill else { return false }
        let second = blocks.remove(at: block + 1)
        blocks[block].reserveCapacity(Self.blockFill)
        blocks[block].append(contentsOf: second)
        counts = PrefixCounts(blocks.lazy.map(\.count))
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
