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
    /// The next one is the last of them.
    private var pending: [Piece] = []

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
        let most = size < threshold ? size : min(Self.largest, max(smallest, size / (Int64(parallel) * Self.piecesPerConnection)))
        var pieces: [Piece] = []
        for gap in gaps {
            var start = gap.lowerBound
            while start < gap.upperBound {
                let end = min(gap.upperBound, start + most)
                pieces.append(Piece(start: start, end: end))
                start = end
            }
        }
        pending = pieces.reversed() + pending
    }

    /// Has a piece asked for before all others.
    mutating func add(_ piece: Piece) { pending.append(piece) }

    mutating func take() -> Piece? { pending.popLast() }

    /// How many requests there are to be at once, for a file of this size and with so many of them under way.
    func connections(of size: Int64, underWay: Int) -> Int {
        min(size < threshold ? 1 : parallel, pending.count + underWay)
    }
}
