struct FileRange: Sendable, Hashable {
    var start: Int64
    /// The position after the last byte; nil for the end of the file.
    var end: Int64?

    static let whole = FileRange(start: 0)

    /// The value of the header `Range` (RFC 9110, section 14.2); nil for the whole file.
    var headerValue: String? {
        if let end { return "bytes=\(start)-\(end - 1)" }
        return start > 0 ? "bytes=\(start)-" : nil
    }
}

/// Splits a file into ranges, and stores the ranges that have not been requested yet.
///
/// A large file has more ranges than connections, and the ranges are requested in the file's order. Connections of different speeds
/// therefore finish at about the same time, and the received bytes are mostly contiguous from the start.
struct RangePlan: Sendable {
    /// The limits, in bytes, of ``maximumRangeSize`` for a file with several ranges. A lower ``threshold`` replaces the lower limit.
    private static let smallest: Int64 = 16 << 20
    private static let largest: Int64 = 128 << 20
    private static let rangesPerConnection: Int64 = 4

    /// The maximum number of parallel requests.
    let parallel: Int
    /// The minimum size, in bytes, of a file that is downloaded in several ranges.
    let threshold: Int64
    /// The ranges in reverse order. A range longer than ``maximumRangeSize`` is split when it is requested.
    private var pending: [FileRange] = []
    /// The maximum size of a range in bytes.
    private var maximumRangeSize = Int64.max

    init(parallel: Int, threshold: Int64) {
        self.parallel = max(1, parallel)
        self.threshold = max(1, threshold)
    }

    var isEmpty: Bool { pending.isEmpty }

    /// The first request for a file of unknown size. The response reports the file's size.
    var first: FileRange { parallel > 1 ? FileRange(start: 0, end: smallest) : .whole }

    /// The lower limit of ``maximumRangeSize`` for a file with several ranges, and the size of the first range of a file of unknown size.
    private var smallest: Int64 { min(Self.smallest, threshold) }

    mutating func add(_ gaps: [Range<Int64>], of size: Int64) {
        maximumRangeSize =
            size < threshold ? max(size, 1) : min(Self.largest, max(smallest, size / (Int64(parallel) * Self.rangesPerConnection)))
        pending = gaps.reversed().map { FileRange(start: $0.lowerBound, end: $0.upperBound) } + pending
    }

    /// Adds a range, which is requested before all other ranges.
    mutating func add(_ range: FileRange) { pending.append(range) }

    mutating func nextRange() -> FileRange? {
        guard let next = pending.popLast() else { return nil }
        guard let end = next.end, end - next.start > maximumRangeSize else { return next }
        pending.append(FileRange(start: next.start + maximumRangeSize, end: end))
        return FileRange(start: next.start, end: next.start + maximumRangeSize)
    }

    /// Returns the number of parallel requests for a file of `size` bytes, including those that are running.
    ///
    /// - Parameter underWay: The number of running requests.
    func connections(of size: Int64, underWay: Int) -> Int {
        var ranges = underWay
        for range in pending where ranges < parallel {
            ranges += range.end.map { Int(clamping: ($0 - range.start - 1) / maximumRangeSize + 1) } ?? 1
        }
        return min(size < threshold ? 1 : parallel, ranges)
    }
}
