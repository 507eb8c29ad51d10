extension RankedKeys: Sequence {
    /// A range of sessions in order. Creating it takes logarithmic time; each element takes constant time.
    package struct Keys: Sequence, IteratorProtocol, Sendable {
        private let blocks: ContiguousArray<Block>
        private var block: Int
        private var offset: Int

        package private(set) var underestimatedCount: Int

        fileprivate init(_ keys: RankedKeys, _ range: Range<Int>) {
            precondition(range.lowerBound >= 0 && range.upperBound <= keys.count, "The range is out of bounds.")
            blocks = keys.blocks
            (block, offset) = range.isEmpty ? (0, 0) : keys.counts.block(holding: range.lowerBound)
            underestimatedCount = range.count
        }

        package mutating func next() -> SessionKey? {
            guard underestimatedCount > 0 else { return nil }
            underestimatedCount -= 1
            if offset == blocks[block].count { (block, offset) = (block + 1, 0) }
            defer { offset += 1 }
            return blocks[block][offset]
        }
    }

    package func makeIterator() -> Keys {
        keys(in: 0..<count)
    }

    package var underestimatedCount: Int { count }

    /// The sessions at these indices, in order. The indices must be in range.
    package func keys(in range: Range<Int>) -> Keys {
        Keys(self, range)
    }
}

extension RankedKeys: Equatable {
    /// Whether two collections contain the same sessions in the same order. The division into blocks does not matter.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }
}
