package import TransferKit

/// An order of sessions in which each is found by its index and by its ID, and put in and taken out, without a look at all the others.
///
/// Kept in pieces of bounded size: what is done takes time that grows with the square root of the number of sessions.
package struct SessionOrder: Sendable {
    private struct Piece: Sendable {
        let number: Int
        var ids: [SessionID]
    }

    private static let sizeOfPiece = 512

    private var pieces: [Piece] = []
    /// The number of the piece that a session is in.
    private var numbers: [SessionID: Int] = [:]
    private var nextNumber = 0

    package init(_ ids: [SessionID]) {
        insert(ids, at: 0)
    }

    /// How many sessions there are.
    package var count: Int { numbers.count }

    /// Where a session is; nil if it is not there.
    package func index(of id: SessionID) -> Int? {
        guard let number = numbers[id] else { return nil }
        var start = 0
        for piece in pieces {
            if piece.number == number { return piece.ids.firstIndex(of: id).map { start + $0 } }
            start += piece.ids.count
        }
        return nil
    }

    /// Puts sessions in, the first at this index or at the end. Those that are there already are left where they are.
    package mutating func insert(_ ids: [SessionID], at index: Int) {
        let new = ids.filter { numbers[$0] == nil }
        guard !new.isEmpty else { return }
        let (found, offset) = place(of: index)
        if new.count == 1, found < pieces.count, pieces[found].ids.count < 2 * Self.sizeOfPiece {
            pieces[found].ids.insert(new[0], at: offset)
            numbers[new[0]] = pieces[found].number
            return
        }
        var place = found
        var tail: [SessionID] = []
        if place < pieces.count {
            tail = Array(pieces[place].ids[offset...])
            pieces[place].ids.removeSubrange(offset...)
            if !pieces[place].ids.isEmpty { place += 1 } else { pieces.remove(at: place) }
        }
        let inserted = (Self.cut(new) + (tail.isEmpty ? [] : [tail])).map { ids in
            nextNumber += 1
            for id in ids { numbers[id] = nextNumber }
            return Piece(number: nextNumber, ids: ids)
        }
        pieces.insert(contentsOf: inserted, at: place)
    }

    /// Takes the session at an index out, if there is one.
    package mutating func remove(at index: Int) {
        guard index >= 0, index < count else { return }
        let (place, offset) = place(of: index, isInside: true)
        numbers[pieces[place].ids.remove(at: offset)] = nil
        if pieces[place].ids.isEmpty { pieces.remove(at: place) }
    }

    private static func cut(_ ids: [SessionID]) -> [[SessionID]] {
        stride(from: 0, to: ids.count, by: sizeOfPiece).map { Array(ids[$0..<min($0 + sizeOfPiece, ids.count)]) }
    }

    /// The piece that an index is in, and where in there. The end of a piece is in it, unless something inside is meant.
    private func place(of index: Int, isInside: Bool = false) -> (place: Int, offset: Int) {
        var rest = max(0, index)
        for (place, piece) in pieces.enumerated() {
            if rest < piece.ids.count || (!isInside && rest == piece.ids.count) { return (place, rest) }
            rest -= piece.ids.count
        }
        return pieces.isEmpty ? (0, 0) : (pieces.count - 1, pieces[pieces.count - 1].ids.count)
    }
}
