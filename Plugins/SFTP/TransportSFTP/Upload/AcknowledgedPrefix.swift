/// How far a file is without a gap, when its pieces are confirmed in any order.
struct AcknowledgedPrefix: Sendable {
    /// Every byte before it was confirmed.
    private(set) var end: Int64
    /// Pieces behind a gap: where they end, by where they begin.
    private var pieces: [Int64: Int64] = [:]

    init(from start: Int64) {
        end = start
    }

    /// Takes in a piece, which overlaps none before it.
    mutating func insert(_ piece: Range<Int64>) {
        guard !piece.isEmpty else { return }
        guard piece.lowerBound == end else {
            pieces[piece.lowerBound] = piece.upperBound
            return
        }
        end = piece.upperBound
        while let next = pieces.removeValue(forKey: end) { end = next }
    }
}
