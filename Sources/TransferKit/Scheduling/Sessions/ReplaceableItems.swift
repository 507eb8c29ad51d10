import Foundation

/// The rows of items whose transfer has not begun.
package struct ReplaceableItems: Sendable, Equatable, Codable {
    /// The positions of rows in the table `file`.
    var positions: Set<Int64> = []
    /// The sequence numbers of rows in the table `item`.
    var sequences: Set<Int64> = []
    /// The source and the remote name of each item, by its position in the session. These values distinguish a removed item from a new item
    /// that reuses the row of the removed item.
    var contents: [Int64: [Data]] = [:]

    var count: Int { positions.count + sequences.count }

    /// Creates an empty set of rows. Together with ``ItemSelection/all``, the empty set stands for all items of a session.
    package init() {}
}
