import Locking
import TransferCore

/// Divides a range of a file into blocks. Several readers can request the next block concurrently.
final class ContentBlocks: Sendable {
    private let rest: Locked<Range<Int64>>
    private let size: Int64

    /// - Parameter size: The maximum size of a block in bytes.
    init(_ range: Range<Int64>, each size: Int64 = .max) {
        rest = Locked(range)
        self.size = size
    }

    /// Returns nil after the last block.
    var next: @Sendable () -> Range<Int64>? {
        { [self] in
            rest.withLock { rest in
                guard !rest.isEmpty else { return nil }
                let block = rest.prefix(size)
                rest = block.upperBound..<rest.upperBound
                return block
            }
        }
    }
}

extension Range<Int64> {
    fileprivate func prefix(_ size: Int64) -> Range<Int64> {
        lowerBound..<lowerBound + Swift.min(size, upperBound - lowerBound)
    }
}
