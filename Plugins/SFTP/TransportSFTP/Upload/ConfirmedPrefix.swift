/// Tracks the position up to which all bytes of a range are confirmed: by the server for an upload, by the disk for a download. The pieces
/// of the range can be inserted in any order.
package struct ConfirmedPrefix: Sendable {
    /// The position up to which all bytes are confirmed.
    package private(set) var end: Int64
    /// The confirmed ranges after the first gap, in order. Adjacent ranges are merged, so there is one range per gap.
    private var islands: [Range<Int64>] = []

    package init(from start: Int64) {
        end = start
    }

    /// The number of confirmed ranges after the first gap.
    package var islandCount: Int { islands.count }

    /// Adds a confirmed piece.
    package mutating func insert(_ piece: Range<Int64>) {
        guard piece.upperBound > end else { return }
        guard piece.lowerBound > end || !islands.isEmpty else {
            end = piece.upperBound
            return
        }
        // Binary search for the first range that ends at or after the start of the piece.
        var (first, count) = (0, islands.count)
        while count > 0 {
            let half = count / 2
            if islands[first + half].upperBound < piece.lowerBound {
                first += half + 1
                count -= half + 1
            } else {
                count = half
            }
        }
        var merged = piece
        var next = first
        while next < islands.count, islands[next].lowerBound <= merged.upperBound {
            merged = min(merged.lowerBound, islands[next].lowerBound)..<max(merged.upperBound, islands[next].upperBound)
            next += 1
        }
        guard merged.lowerBound > end else {
            end = merged.upperBound
            islands.removeFirst(next)
            return
        }
        islands.replaceSubrange(first..<next, with: CollectionOfOne(merged))
    }
}
