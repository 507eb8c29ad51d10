import Foundation
import HeapModule

/// Sessions sorted by the times at which they are due, earliest first.
///
/// A session may occur any number of times. If a session's due time changes, the outdated element stays until it reaches the front. After
/// ``popFirst()``, the caller must therefore check whether the element's time is still the session's due time.
package struct DueTimes: Sendable {
    package struct DueTime: Sendable, Comparable {
        /// The time, in the unit that the caller chose.
        package var due: Int64
        package var key: SessionKey

        package static func < (left: Self, right: Self) -> Bool {
            (left.due, left.key) < (right.due, right.key)
        }
    }

    private var heap = Heap<DueTime>()

    package init() {}

    package var count: Int { heap.count }

    /// The earliest element; among elements with the same time, the element with the lowest key. Nil if the collection is empty.
    package var first: DueTime? { heap.min }

    package mutating func insert(due: Int64, key: SessionKey) {
        heap.insert(DueTime(due: due, key: key))
    }

    package mutating func popFirst() -> DueTime? {
        heap.popMin()
    }
}

extension DueTimes: Equatable {
    /// Whether both collections contain the same elements, each the same number of times. Used only by tests, because it sorts both
    /// collections.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.heap.unordered.sorted() == right.heap.unordered.sorted()
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to the range of Int64, which is about 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, isTooMany) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflows) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooMany || overflows ? (seconds < 0 ? .min : .max) : sum
    }
}

extension Date {
    /// The date in milliseconds since 1970, as in the database. Clamped to the range from `distantPast` to `distantFuture`.
    var milliseconds: Int64 {
        let date = min(max(self, .distantPast), .distantFuture)
        return Int64(exactly: (date.timeIntervalSince1970 * 1_000).rounded()) ?? 0
    }

    /// Creates a date from milliseconds since 1970. Out-of-range milliseconds become `distantPast` or `distantFuture`.
    init(milliseconds: Int64) {
        self = min(max(Date(timeIntervalSince1970: Double(milliseconds) / 1_000), .distantPast), .distantFuture)
    }
}
