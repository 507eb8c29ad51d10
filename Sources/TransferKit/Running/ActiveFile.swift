import Synchronization
import TransferCore

/// The progress of one file in flight: written from a transport's threads without a lock, read by the session's monitor.
package final class ActiveFile: Sendable {
    package let position: Int64
    package let size: Int64
    /// Where the attempt began.
    package let start: Int64
    /// What was told of the file before: figures never go back, even if the attempt begins before that point.
    private let floor: Int64
    private let sentBytes: Atomic<Int64>
    private let confirmedBytes: Atomic<Int64>
    private let refusals = Atomic(0)
    private let stalled = Atomic(false)
    private let abandon = Locked<(@Sendable () -> Void)?>(nil)

    package init(position: Int64, size: Int64, start: Int64, floor: Int64 = 0) {
        self.position = position
        self.size = size
        self.start = start
        self.floor = min(floor, size)
        sentBytes = Atomic(start)
        confirmedBytes = Atomic(start)
    }

    /// Neither number ever decreases, whatever the transport says.
    package func report(sent: Int64, confirmed: Int64) {
        sentBytes.max(min(sent, size), ordering: .relaxed)
        confirmedBytes.max(min(confirmed, size), ordering: .relaxed)
    }

    /// The rate limits let nothing through when the attempt asked.
    package func heldBack() {
        refusals.add(1, ordering: .relaxed)
    }

    package var sent: Int64 { sentBytes.load(ordering: .relaxed) }
    package var confirmed: Int64 { confirmedBytes.load(ordering: .relaxed) }
    /// How often the rate limits held the attempt back.
    package var timesHeldBack: Int { refusals.load(ordering: .relaxed) }
    package var isStalled: Bool { stalled.load(ordering: .relaxed) }

    /// What is told of the file: what was confirmed is sent, whatever the transport says.
    var shownConfirmed: Int64 { max(confirmed, floor) }
    var shownSent: Int64 { max(sent, shownConfirmed) }
    /// How many bytes this attempt moved.
    var moved: Int64 { max(0, sent - start) }

    /// What ends the attempt when it stalls.
    package func whenStalled(_ action: @escaping @Sendable () -> Void) {
        abandon.withLock { $0 = action }
    }

    package func stall() {
        stalled.store(true, ordering: .relaxed)
        abandon.withLock { $0 }?()
    }
}
