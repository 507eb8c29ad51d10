import Locking
import Synchronization
import TransferCore

/// The progress of one file in flight. The transport's threads update the byte positions without a lock; the run's ``SessionMonitor`` reads
/// them.
package final class ActiveFile: Sendable {
    /// The position of the file in the session.
    package let position: Int64
    /// The byte position at which the attempt began.
    package let start: Int64
    /// The confirmed byte position that the statistics showed before this attempt. ``shownConfirmed`` never falls below this position, even
    /// if the attempt begins earlier in the file.
    private let floor: Int64
    /// The size in bytes; negative while it is unknown.
    private let knownSize: Atomic<Int64>
    private let sentBytes: Atomic<Int64>
    private let confirmedBytes: Atomic<Int64>
    private let activities = Atomic(0)
    private let stalled = Atomic(false)
    private let sizeWasReported = Atomic(false)
    private let recordWasReported = Atomic(false)
    private let recordIsPossible = Atomic(false)
    private let awaitsResponse = Atomic(false)
    /// Whether the attempt does work that moves neither position, for example sends bytes a second time. Becomes false when a position grows, or
    /// when a request has been sent completely.
    private let isBusy = Atomic(false)
    /// Returns whether the file waits at a byte position: for its turn to send (``RequestTurns``), or for more data from the app's stream.
    private let isAwaiting: @Sendable (Int64) -> Bool
    /// Whether the size comes from a listing and may therefore be wrong. Until the transport reports a size, bytes beyond the listed size
    /// count as activity.
    private let isSizeGuessed: Bool
    private let bytesBeyond = Atomic<Int64>(0)
    private let stallAction = Locked<(@Sendable () -> Void)?>(nil)
    private let remainingPartFileLocation = Locked<String?>(nil)
    let phases: AttemptPhases

    package init(
        position: Int64, size: Int64?, start: Int64, floor: Int64 = 0, isSizeGuessed: Bool = false,
        isAwaiting: @escaping @Sendable (Int64) -> Bool = { _ in false }, now: @escaping @Sendable () -> Duration = { .zero }
    ) {
        phases = AttemptPhases(now: now)
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

    /// The size in bytes; nil while it is unknown.
    package var size: Int64? {
        let size = knownSize.load(ordering: .relaxed)
        return size < 0 ? nil : size
    }

    /// Records that the transport reported the size in this attempt.
    func noteReportedSize() {
        sizeWasReported.store(true, ordering: .relaxed)
    }

    var isSizeReported: Bool { sizeWasReported.load(ordering: .relaxed) }

    /// Sets the size. Called by the run, which includes the size in the statistics.
    func setSize(_ size: Int64) {
        knownSize.store(size, ordering: .relaxed)
    }

    /// Records the byte positions up to which the file was sent and confirmed. Neither position ever decreases.
    ///
    /// - Returns: Which of the positions grew.
    @discardableResult
    package func report(sent: Int64, confirmed: Int64) -> (sent: Bool, confirmed: Bool) {
        let most = size ?? .max
        if isSizeGuessed, !isSizeReported, sent > most {
            let beyond = bytesBeyond.max(sent - most, ordering: .relaxed)
            if beyond.newValue > beyond.oldValue { noteWork() }
        }
        let sent = sentBytes.max(min(sent, most), ordering: .relaxed)
        let confirmed = confirmedBytes.max(min(confirmed, most), ordering: .relaxed)
        let grew = (sent: sent.newValue > sent.oldValue, confirmed: confirmed.newValue > confirmed.oldValue)
        if grew.sent || grew.confirmed {
            awaitsResponse.store(false, ordering: .relaxed)
            isBusy.store(false, ordering: .relaxed)
        }
        if grew.sent { phases.enter(sent.newValue < most ? .transferring : .awaitingResponse) }
        return grew
    }

    /// Records that the rate limits currently allow the attempt no bytes.
    package func noteRateLimit() {
        phases.enter(.rateLimited)
        activities.add(1, ordering: .relaxed)
    }

    /// Records that the attempt does work that advances neither byte position.
    package func noteWork() {
        isBusy.store(true, ordering: .relaxed)
        recordActivity()
    }

    private func recordActivity() {
        awaitsResponse.store(false, ordering: .relaxed)
        activities.add(1, ordering: .relaxed)
    }

    /// Records that a request has been sent completely, and that its response is pending.
    package func noteAwaitedResponse() {
        phases.enter(.awaitingResponse)
        awaitsResponse.store(true, ordering: .relaxed)
        isBusy.store(false, ordering: .relaxed)
    }

    /// Whether the attempt waits for a response from the other end.
    ///
    /// A file of more than 1 MiB counts as waiting once this attempt has sent its last byte, even without a call to
    /// ``noteAwaitedResponse()``, unless ``noteWork()`` was called since. A smaller file counts as waiting only after that call, because the
    /// server has little to do after the last byte. The same applies to a file whose last byte was sent before this attempt, because the
    /// attempt begins with small requests, to which a server responds quickly.
    package var isResponseAwaited: Bool {
        awaitsResponse.load(ordering: .relaxed)
            || !isBusy.load(ordering: .relaxed) && moved > 0 && size.map { $0 > FileWindow.smallSize && sent >= $0 } ?? false
    }

    package var sent: Int64 { sentBytes.load(ordering: .relaxed) }
    package var confirmed: Int64 { confirmedBytes.load(ordering: .relaxed) }
    /// The number of recorded activities that moved no bytes, including waits for the rate limits. An increase shows that the attempt does
    /// not hang.
    package var activityCount: Int { activities.load(ordering: .relaxed) }
    /// Whether the attempt waits for this machine: for its turn to send, or for more data from the app's stream.
    package var awaitsSource: Bool { isAwaiting(sent) }
    package var isStalled: Bool { stalled.load(ordering: .relaxed) }

    /// The confirmed position to report, at least ``floor``.
    var shownConfirmed: Int64 { max(confirmed, floor) }
    /// The sent position to report. Confirmed bytes also count as sent, regardless of the transport's report.
    var shownSent: Int64 { max(sent, shownConfirmed) }
    var progress: ItemProgress { ItemProgress(bytesTotal: size, bytesDone: shownConfirmed, bytesSent: shownSent) }
    /// The number of bytes that this attempt transferred.
    var moved: Int64 { max(0, sent - start) }

    /// Notes that the other end creates a record, such as a form submission, for each successful attempt.
    func noteRecord() { recordWasReported.store(true, ordering: .relaxed) }

    /// Whether the other end creates a record for each successful attempt. If so, attempts must not be repeated needlessly.
    var leavesRecord: Bool { recordWasReported.load(ordering: .relaxed) }

    func setRecordPossible(_ isPossible: Bool) { recordIsPossible.store(isPossible, ordering: .relaxed) }

    /// Whether the other end may have a record of this attempt. If so, the file must not be sent again.
    var mayHaveRecord: Bool { recordIsPossible.load(ordering: .relaxed) }

    func noteRemainingPartFile(_ location: String) { remainingPartFileLocation.withLock { $0 = location } }

    /// The kind and the path of the part file that the cancelled attempt leaves at the other end, for the error of a stalled attempt; nil
    /// if the transport reported no part file.
    var remainingPartFile: String? { remainingPartFileLocation.withLock { $0 } }

    /// Notes that the attempt begins, and sets the action that ends the attempt if the attempt stalls.
    package func whenStalled(_ action: @escaping @Sendable () -> Void) {
        recordActivity()
        stallAction.withLock { $0 = action }
    }

    /// Ends the attempt as stalled. Has no effect before the attempt begins, because the file then waits for this process, not for the
    /// other end.
    package func stall() {
        guard let action = stallAction.withLock({ $0 }) else { return }
        stalled.store(true, ordering: .relaxed)
        action()
    }
}
