import Synchronization
import TransferCore

/// The progress of one file in flight: written from a transport's threads without a lock, read by the session's monitor.
package final class ActiveFile: Sendable {
    package let position: Int64
    package let size: Int64
    private let sentBytes: Atomic<Int64>
    private let confirmedBytes: Atomic<Int64>
    private let stalled = Atomic(false)
    private let abandon = Locked<(@Sendable () -> Void)?>(nil)

    /// - Parameter start: The position that an earlier attempt had confirmed.
    package init(position: Int64, size: Int64, start: Int64) {
        self.position = position
        self.size = size
        sentBytes = Atomic(start)
        confirmedBytes = Atomic(start)
    }

    /// Neither number ever decreases, whatever the transport says.
    package func report(sent: Int64, confirmed: Int64) {
        sentBytes.max(min(sent, size), ordering: .relaxed)
        confirmedBytes.max(min(confirmed, size), ordering: .relaxed)
    }

    package var sent: Int64 { sentBytes.load(ordering: .relaxed) }
    package var confirmed: Int64 { confirmedBytes.load(ordering: .relaxed) }
    package var isStalled: Bool { stalled.load(ordering: .relaxed) }

    /// What ends the attempt when it stalls.
    package func whenStalled(_ action: @escaping @Sendable () -> Void) {
        abandon.withLock { $0 = action }
    }

    package func stall() {
        stalled.store(true, ordering: .relaxed)
        abandon.withLock { $0 }?()
    }
}
