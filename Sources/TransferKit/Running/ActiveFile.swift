import Locking
import Synchronization
import TransferCore

/// The progress of one file in flight: written from a transport's threads without a lock, read by the session's monitor.
package final class ActiveFile: Sendable {
    package let position: Int64
    /// Where the attempt began.
    package let start: Int64
    /// What was told of the file before: figures never go back, even if the attempt begins before that point.
    private let floor: Int64
    /// Less than 0 while it is not known.
    private let knownSize: Atomic<Int64>
    private let sentBytes: Atomic<Int64>
    private let confirmedBytes: Atomic<Int64>
    private let signsOfLife = Atomic(0)
    private let stalled = Atomic(false)
    private let sizeWasTold = Atomic(false)
    private let recordWasTold = Atomic(false)
    private let isWaiting = Atomic(false)
    /// Whether it does something since its last byte was sent first, such as sending that once more.
    private let isBusy = Atomic(false)
    /// Whether there is nothing to move at a position because an app's stream has no more yet, or because it is not the file's turn.
    private let isAwaiting: @Sendable (Int64) -> Bool
    /// Whether only a listing told the size, which is not relied on: bytes beyond it are a sign of life until the transport tells another.
    private let isSizeGuessed: Bool
    private let bytesBeyond = Atomic<Int64>(0)
    private let abandon = Locked<(@Sendable () -> Void)?>(nil)

    package init(
        position: Int64, size: Int64?, start: Int64, floor: Int64 = 0, isSizeGuessed: Bool = false,
        isAwaiting: @escaping @Sendable (Int64) -> Bool = { _ in false }
    ) {
        self.isAwaiting = isAwaiting
        self.isSizeGuessed = isSizeGuessed
        self.position = position
        knownSize = Atomic(size ?? -1)
        let start = max(0, start)
        self.start = start
        self.floor = max(0, min(floor, size ?? .max))
        sentBytes = Atomic(start)
        confirmedBytes = Atomic(start)
    }

    /// Nil while it is not known.
    package var size: Int64? {
        let size = knownSize.load(ordering: .relaxed)
        return size < 0 ? nil : size
    }

    /// The transport told the size in this attempt.
    func noteSizeTold() {
        sizeWasTold.store(true, ordering: .relaxed)
    }

    /// Whether the size is more than what was known before the attempt.
    var isSizeTold: Bool { sizeWasTold.load(ordering: .relaxed) }

    /// Called by the run, which counts it.
    func setSize(_ size: Int64) {
        knownSize.store(size, ordering: .relaxed)
    }

    /// Neither number ever decreases, whatever the transport says.
    ///
    /// - Returns: Which of them grew.
    @discardableResult
    package func report(sent: Int64, confirmed: Int64) -> (sent: Bool, confirmed: Bool) {
        let most = size ?? .max
        if isSizeGuessed, !isSizeTold, sent > most {
            let beyond = bytesBeyond.max(sent - most, ordering: .relaxed)
            if beyond.newValue > beyond.oldValue { isActive() }
        }
        let sent = sentBytes.max(min(sent, most), ordering: .relaxed)
        let confirmed = confirmedBytes.max(min(confirmed, most), ordering: .relaxed)
        let grew = (sent: sent.newValue > sent.oldValue, confirmed: confirmed.newValue > confirmed.oldValue)
        if grew.sent || grew.confirmed {
            isWaiting.store(false, ordering: .relaxed)
            isBusy.store(false, ordering: .relaxed)
        }
        return grew
    }

    /// The rate limits let nothing through when the attempt asked.
    package func heldBack() {
        signsOfLife.add(1, ordering: .relaxed)
    }

    /// The attempt is busy with something that moves no bytes.
    package func isActive() {
        isBusy.store(true, ordering: .relaxed)
        giveSign()
    }

    private func giveSign() {
        isWaiting.store(false, ordering: .relaxed)
        signsOfLife.add(1, ordering: .relaxed)
    }

    /// The other end has all that it was to get for now, and has yet to say so.
    package func awaitsAnswer() {
        isWaiting.store(true, ordering: .relaxed)
        isBusy.store(false, ordering: .relaxed)
    }

    /// Whether it is the other end's turn.
    ///
    /// After the last byte of a small file only if the transport says so: its server has little to do.
    package var isAnswerAwaited: Bool {
        isWaiting.load(ordering: .relaxed)
            || !isBusy.load(ordering: .relaxed) && size.map { $0 > FileWindow.smallSize && sent >= $0 } ?? false
    }

    package var sent: Int64 { sentBytes.load(ordering: .relaxed) }
    package var confirmed: Int64 { confirmedBytes.load(ordering: .relaxed) }
    /// How often it was known that the attempt does not hang, though it moves nothing.
    package var livelySigns: Int { signsOfLife.load(ordering: .relaxed) }
    /// Whether it waits for something on this machine: an app's stream that has no more yet, or its turn.
    package var awaitsSource: Bool { isAwaiting(sent) }
    package var isStalled: Bool { stalled.load(ordering: .relaxed) }

    /// What is told of the file: what was confirmed is sent, whatever the transport says.
    var shownConfirmed: Int64 { max(confirmed, floor) }
    var shownSent: Int64 { max(sent, shownConfirmed) }
    /// How many bytes this attempt moved.
    var moved: Int64 { max(0, sent - start) }

    /// The other end keeps a record of the attempt, if it succeeds.
    func noteRecord() { recordWasTold.store(true, ordering: .relaxed) }

    /// Whether the attempt is better not made twice.
    var leavesRecord: Bool { recordWasTold.load(ordering: .relaxed) }

    /// The attempt begins: from now on it may hang, and this ends it then.
    package func whenStalled(_ action: @escaping @Sendable () -> Void) {
        giveSign()
        abandon.withLock { $0 = action }
    }

    /// The attempt hangs. One that has not begun waits for this process itself.
    package func stall() {
        guard let action = abandon.withLock({ $0 }) else { return }
        stalled.store(true, ordering: .relaxed)
        action()
    }
}
