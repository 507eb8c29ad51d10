package import TransferKit

/// An ordered list of sessions that quickly finds the index of a session, and inserts and removes sessions at an index.
///
/// The list is split into blocks of limited size, which keeps operations fast in queues of any size.
package struct SessionOrder: Sendable {
    private struct Block: Sendable {
        let number: Int
        var ids: [SessionID]
    }

    private static let blockSize = 512

    private var blocks: [Block] = []
    /// The number of the block that contains each session.
    private var numbers: [SessionID: Int] = [:]
    private var nextNumber = 0

    package init(_ ids: [SessionID]) {
        insert(ids, at: 0)
    }

    package var count: Int { numbers.count }

    /// Returns the index of a session; nil if the session is not in the list.
    package func index(of id: SessionID) -> Int? {
        guard let number = numbers[id] else { return nil }
        var start = 0
        for block in blocks {
            if block.number == number { return block.ids.firstIndex(of: id).map { start + $0 } }
            start += block.ids.count
        }
        return nil
    }

    /// Inserts sessions at an index, or at the end if the index is too large. Ignores sessions that are already in the list.
    package mutating func insert(_ ids: [SessionID], at index: Int) {
        let new = ids.filter { numbers[$0] == nil }
        guard !new.isEmpty else { return }
        let (found, offset) = position(of: index)
        if new.count == 1, found < blocks.count, blocks[found].ids.count < 2 * Self.blockSize {
            blocks[found].ids.insert(new[0], at: offset)
            numbers[new[0]] = blocks[found].number
            return
        }
        var block = found
        var tail: [SessionID] = []
        if block < blocks.count {
            tail = Array(blocks[block].ids[offset...])
            blocks[block].ids.removeSubrange(offset...)
            if !blocks[block].ids.isEmpty { block += 1 } else { blocks.remove(at: block) }
        }
        let inserted = (Self.split(new) + (tail.isEmpty ? [] : [tail])).map { ids in
            nextNumber += 1
            for id in ids { numbers[id] = nextNumber }
            return Block(number: nextNumber, ids: ids)
        }
        blocks.insert(contentsOf: inserted, at: block)
    }

    /// Removes the session at an index; does nothing if the index is out of range.
    package mutating func remove(at index: Int) {
        guard index >= 0, index < count else { return }
        let (block, offset) = position(of: index, mustExist: true)
        numbers[blocks[block].ids.remove(at: offset)] = nil
        if blocks[block].ids.isEmpty { blocks.remove(at: block) }
    }

    private static func split(_ ids: [SessionID]) -> [[SessionID]] {
        stride(from: 0, to: ids.count, by: blockSize).map { Array(ids[$0..<min($0 + blockSize, ids.count)]) }
    }

    /// Returns the index in ``blocks`` of the block that contains an index of the list, and the offset in that block.
    ///
    /// - Parameter mustExist: Whether a session must exist at the index. If false, an index between two blocks belongs to the first of them.
    private func position(of index: Int, mustExist: Bool = false) -> (block: Int, offset: Int) {
        var rest = max(0, index)
        for (blockIndex, block) in blocks.enumerated() {
            if rest < block.ids.count || (!mustExist && rest == block.ids.count) { return (blockIndex, rest) }
            rest -= block.ids.count
        }
        return blocks.isEmpty ? (0, 0) : (blocks.count - 1, blocks[blocks.count - 1].ids.count)
    }
}
