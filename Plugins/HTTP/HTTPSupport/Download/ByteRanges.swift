/// A set of byte positions in a file, stored as ordered ranges. No range is empty or adjacent to another.
struct ByteRanges: Sendable, Hashable {
    private(set) var ranges: [Range<Int64>] = []

    init(upTo position: Int64 = 0) {
        if position > 0 { ranges = [0..<position] }
    }

    /// The position of the first missing byte.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }

    var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    var end: Int64 { ranges.last?.upperBound ?? 0 }

    mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        if let last = ranges.last, last.upperBound == range.lowerBound {
            // The usual case, without an allocation.
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
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "A byte range begins before byte 0, or exceeds the maximum file length.")
            }
            insert(range)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges)
    }
}
