import Locking

/// Selects the blocks of a partly sent file to compare with the server's copy, because the server may have lost them. The newest blocks of
/// each range come first.
///
/// An operating system keeps written data in memory for a limited time before it writes the data to the disk. A power failure can destroy
/// only the data sent within this time, and reading that data back takes about as long as sending it. So the selection ends after a fixed
/// time, for files of any size.
package final class RecentBlocks: Sendable {
    private struct State {
        var ranges: [Range<Int64>]
        var nextIndex = 0
    }

    private let state: Locked<State>
    private let end: ContinuousClock.Instant
    private let now: @Sendable () -> ContinuousClock.Instant

    /// The maximum size of a block in bytes.
    private static let size: Int64 = 4 << 20
    /// Twice Linux's default of 30 s (`dirty_expire_centisecs`, in the kernel's documentation of /proc/sys/vm).
    private static let time = Duration.seconds(60)

    /// - Parameter count: The number of bytes at the end of each range.
    package convenience init(_ ranges: [Range<Int64>], only count: Int64) {
        self.init(ranges.map { max($0.lowerBound, $0.upperBound - count)..<$0.upperBound })
    }

    /// The time limit starts now.
    package init(_ ranges: [Range<Int64>], now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        state = Locked(State(ranges: ranges.filter { !$0.isEmpty }))
        self.now = now
        end = now() + Self.time
    }

    /// Returns nil after the last block, or after the time limit.
    package func next() -> Range<Int64>? {
        guard now() < end else { return nil }
        return state.withLock { state in
            guard !state.ranges.isEmpty else { return nil }
            let index = state.nextIndex % state.ranges.count
            let range = state.ranges[index]
            let block = max(range.lowerBound, range.upperBound - Self.size)..<range.upperBound
            state.ranges[index] = range.lowerBound..<block.lowerBound
            state.nextIndex = index + 1
            if state.ranges[index].isEmpty {
                state.ranges.remove(at: index)
                state.nextIndex = index
            }
            return block
        }
    }
}
