import Foundation

/// The rows of items that have not begun.
package struct ReplaceableItems: Sendable, Equatable, Codable {
    /// The positions in the table `file`.
    var positions: Set<Int64> = []
    /// The sequences in the table `item`.
    var sequences: Set<Int64> = []
    /// The source and the remote name of each item, by its position in the session. They distinguish a new item that got the row of a removed item.
    var contents: [Int64: [Data]] = [:]

    var count: Int { positions.count + sequences.count }

    /// Creates an empty set of rows, which also stands for all items.
    package init() {}
}
