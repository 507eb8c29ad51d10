import HeapModule

/// When something is due for a session, earliest first.
///
/// A session may be in here any number of times, and nothing is taken out early: whoever takes out the first must check whether it still holds.
package struct DueTimes: Sendable {
    package struct DueTime: Sendable, Comparable {
        /// In the unit of whoever inserts.
        package var due: Int64
        package var key: SessionKey

        package static func < (left: Self, right: Self) -> Bool {
            (left.due, left.key) < (right.due, right.key)
        }
    }

    private var heap = Heap<DueTime>()

    package init() {}

    package var count: Int { heap.count }

    /// The earliest; of several due at once, that of the lowest key.
    package var first: DueTime? { heap.min }

    /// Of all, in no order; a key may be there several times.
    var keys: [SessionKey] { heap.unordered.map(\.key) }

    package mutating func insert(due: Int64, key: SessionKey) {
        heap.insert(DueTime(due: due, key: key))
    }

    /// Takes out the earliest.
    package mutating func popFirst() -> DueTime? {
        heap.popMin()
    }
}

extension DueTimes: Equatable {
    /// Whether both hold the same times as often, however they came to. Sorts both: for tests, not for each turn.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.heap.unordered.sorted() == right.heap.unordered.sorted()
    }
}
