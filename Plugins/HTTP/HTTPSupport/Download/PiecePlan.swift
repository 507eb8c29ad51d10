/// A part of a file that one request asks for.
struct Piece: Sendable, Hashable {
    var start: Int64
    /// Behind the last byte; nil for all that follow.
    var end: Int64?

    /// All of the file.
    static let whole = Piece(start: 0)

    /// The value of the header `Range` (RFC 9110, section 14.2); nil for the whole file.
    var range: String? {
        if let end { return "bytes=\(start)-\(end - 1)" }
        return start > 0 ? "bytes=\(start)-" : nil
    }
}

/// How a file is split into pieces, and which of them nobody has asked for yet.
///
/// There are more pieces than connections, in the file's order: so connections of different speed end together, and what arrived is mostly
/// whole from its start.
struct PiecePlan: Sendable {
    private static let smallest: Int64 = 16 << 20
    private static let largest: Int64 = 128 << 20
    private static let piecesPerConnection: Int64 = 4

    /// How many requests there may be at once.
    let parallel: Int
    /// From how many bytes on a file is split.
    let threshold: Int64
    /// The next one is the last of them. What is longer than ``most`` is split when it is its turn.
    private var pending: [Piece] = []
    /// How many bytes a piece has at most.
    private var most = Int64.max

    init(parallel: Int, threshold: Int64) {
        self.parallel = max(1, parallel)
        self.threshold = max(1, threshold)
    }

    var isEmpty: Bool { pending.isEmpty }

    /// What is asked for of a file that nothing is known of. The answer tells how large it is.
    var first: Piece { parallel > 1 ? Piece(start: 0, end: smallest) : .whole }

    private var smallest: Int64 { min(Self.smallest, threshold) }

    /// Plans for what is missing of a file.
    mutating func add(_ gaps: [Range<Int64>], of size: Int64) {
        most = size < threshold ? max(size, 1) : min(Self.largest, max(smallest, size / (Int64(parallel) * Self.piecesPerConnection)))
        pending = gaps.reversed().map { Piece(start: $0.lowerBound, end: $0.upperBound) } + pending
    }

    /// Has a piece asked for before all others.
    mutating func add(_ piece: Piece) { pending.append(piece) }

    mutating func take() -> Piece? {
        guard let next = pending.popLast() else { return nil }
        guard let end = next.end, end - next.start > most else { return next }
        pending.append(Piece(start: next.start + most, end: end))
        return Piece(start: next.start, end: next.start + most)
    }

    /// How many requests there are to be at once, for a file of this size and with so many of them under way.
    func connections(of size: Int64, underWay: Int) -> Int {
        var pieces = underWay
        for piece in pending where pieces < parallel {
            pieces += piece.end.map { Int(clamping: ($0 - piece.start - 1) / most + 1) } ?? 1
        }
        return min(size < threshold ? 1 : parallel, pieces)
    }
}
