/// Tracks the position up to which all bytes of a range have been inserted: acknowledged by the server for an upload, or written to the part
/// file for a download. Subranges can be inserted in any order.
package struct ConfirmedPrefix: Sendable {
    package private(set) var end: Int64
    /// The inserted ranges after the first gap, in order. Adjacent ranges are merged, so there is one range per gap.
    private var islands: [Range<Int64>] = []

    package init(from start: Int64) {
        end = start
    }

    package var islandCount: Int { islands.count }

    package mutating func insert(_ range: Range<Int64>) {
        guard range.upperBound > end else { return }
        guard range.lowerBound > end || !islands.isEmpty else {
            end = range.upperBound
            return
        }
        // Binary search for the first island that ends at or after the start of the range.
        var (first, count) = (0, islands.count)
        while count > 0 {
            let half = count / 2
            if islands[first + half].upperBound < range.lowerBound {
                first += half + 1
                count -= half + 1
            } else {
                count = half
            }
        }
        var merged = range
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
