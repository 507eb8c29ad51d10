import HeapModule

/// Sessions by the times at which they are due, earliest first.
///
/// A session may have any number of entries, and obsolete entries stay. After removing the first entry, check whether the removed entry is still
/// valid.
package struct DueTimes: Sendable {
    package struct DueTime: Sendable, Comparable {
        /// In the unit of the inserted values.
        package var due: Int64
        package var key: SessionKey

        package static func < (left: Self, right: Self) -> Bool {
            (left.due, left.key) < (right.due, right.key)
        }
    }

    private var heap = Heap<DueTime>()

    package init() {}

    package var count: Int { heap.count }

    /// The earliest entry; among entries with the same time, the entry with the lowest key.
    package var first: DueTime? { heap.min }

    /// The keys of all entries, in no particular order, possibly with duplicates.
    var keys: [SessionKey] { heap.unordered.map(\.key) }

    package mutating func insert(due: Int64, key: SessionKey) {
        heap.insert(DueTime(due: due, key: key))
    }

    /// Removes the earliest entry.
    package mutating func popFirst() -> DueTime? {
        heap.popMin()
    }
}

extension DueTimes: Equatable {
    /// Whether both contain the same entries equally often, regardless of their history. Sorts both, so it is for tests only.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.heap.unordered.sorted() == right.heap.unordered.sorted()
    }
}
