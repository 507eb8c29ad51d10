/// Which bytes of a file there are: ranges in order, apart from each other, none of them empty.
struct ByteRanges: Sendable, Hashable {
    private(set) var ranges: [Range<Int64>] = []

    /// All bytes up to a position.
    init(upTo position: Int64 = 0) {
        if position > 0 { ranges = [0..<position] }
    }

    /// Up to where there are all bytes.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }

    /// How many there are.
    var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    /// Behind the last one.
    var end: Int64 { ranges.last?.upperBound ?? 0 }

    mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        if let last = ranges.last, last.upperBound == range.lowerBound {
            // As nearly all do; nothing is allocated for it.
            ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
            return
        }
        let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
        let last = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
        let touched = ranges[first..<last]
        let start = min(range.lowerBound, touched.first?.lowerBound ?? range.lowerBound)
        let end = max(range.upperBound, touched.last?.upperBound ?? range.upperBound)
        ranges.replaceSubrange(first..<last, with: [start..<end])
    }

    /// What is missing of a file of this size.
    func gaps(upTo size: Int64) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var position: Int64 = 0
        for range in ranges where range.lowerBound < size {
            if range.lowerBound > position { gaps.append(position..<range.lowerBound) }
            position = range.upperBound
        }
        if position < size { gaps.append(position..<size) }
        return gaps
    }
}

extension ByteRanges: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        for range in try container.decode([Range<Int64>].self) {
            guard range.lowerBound >= 0, range.upperBound <= RemoteFile.maximumLength else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "A range of bytes is outside of any file.")
            }
            insert(range)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges)
    }
}
