/// A range of a file for one request.
struct Piece: Sendable, Hashable {
    var start: Int64
    /// The position after the last byte; nil for the end of the file.
    var end: Int64?

    /// The whole file.
    static let whole = Piece(start: 0)

    /// The value of the header `Range` (RFC 9110, section 14.2); nil for the whole file.
    var range: String? {
        if let end { return "bytes=\(start)-\(end - 1)" }
        return start > 0 ? "bytes=\(start)-" : nil
    }
}

/// Splits a file into ranges, and keeps those that are not requested yet.
///
/// There are more ranges than connections, and they are requested in the file's order. Connections of different speed therefore end at about the same
/// time, and the received bytes are mostly contiguous from the start.
struct PiecePlan: Sendable {
    private static let smallest: Int64 = 16 << 20
    private static let largest: Int64 = 128 << 20
    private static let piecesPerConnection: Int64 = 4

    /// The maximum number of parallel requests.
    let parallel: Int
    /// The minimum size of a file that is split.
    let threshold: Int64
    /// The ranges in reverse order. A range longer than ``most`` is split when it is requested.
    private var pending: [Piece] = []
    /// The maximum size of a range in bytes.
    private var most = Int64.max

    init(parallel: Int, threshold: Int64) {
        self.parallel = max(1, parallel)
        self.threshold = max(1, threshold)
    }

    var isEmpty: Bool { pending.isEmpty }

    /// The first request for a file of unknown size. The response reports its size.
    var first: Piece { parallel > 1 ? Piece(start: 0, end: smallest) : .whole }

    private var smallest: Int64 { min(Self.smallest, threshold) }

    /// Adds the missing ranges of a file.
    mutating func add(_ gaps: [Range<Int64>], of size: Int64) {
        most = size < threshold ? max(size, 1) : min(Self.largest, max(smallest, size / (Int64(parallel) * Self.piecesPerConnection)))
        pending = gaps.reversed().map { Piece(start: $0.lowerBound, end: $0.upperBound) } + pending
    }

    /// Adds a range to request before all others.
    mutating func add(_ piece: Piece) { pending.append(piece) }

    mutating func take() -> Piece? {
        guard let next = pending.popLast() else { return nil }
        guard let end = next.end, end - next.start > most else { return next }
        pending.append(Piece(start: next.start + most, end: end))
        return Piece(start: next.start, end: next.start + most)
    }

    /// Returns the number of parallel requests for a file of this size, including those that are running.
    func connections(of size: Int64, underWay: Int) -> Int {
        var pieces = underWay
        for piece in pending where pieces < parallel {
            pieces += piece.end.map { Int(clamping: ($0 - piece.start - 1) / most + 1) } ?? 1
        }
        return min(size < threshold ? 1 : parallel, pieces)
    }
}
