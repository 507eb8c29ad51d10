import Locking

/// The numbers of bytes after which connections break.
final class CutPlan: Sendable {
    enum Direction: Sendable {
        case fromClient
        case fromServer
    }

    private let remaining = Locked<[Direction: Int]>([:])

    /// Breaks a connection after `bytes` more bytes have passed in a direction, counted over all connections.
    func cut(_ direction: Direction, after bytes: Int) {
        remaining.withLock { $0[direction] = bytes }
    }

    /// Counts bytes that arrived in a direction.
    ///
    /// - Returns: The number of bytes to forward. If it is less than `count`, the connection breaks.
    func pass(_ count: Int, _ direction: Direction) -> Int {
        remaining.withLock { remaining in
            guard let left = remaining[direction] else { return count }
            remaining[direction] = left > count ? left - count : nil
            return left > count ? count : max(0, min(left, count - 1))
        }
    }
}
