package import Foundation
import Locking
import Synchronization
import SystemPackage
import TransferCore

/// The options and statistics of a running session. The run reads them from the database once, and then updates them in memory. Updating the
/// progress never writes to the database.
package final class LiveRun: Sendable {
    private struct State: Sendable {
        var base: SessionStatistics
        var options: SessionOptions
        /// The app's context value; nil if the session has no context.
        var context: Data?
        var active: [Int64: ActiveFile] = [:]
        /// The confirmed bytes that `base` includes for each unfinished file that this run attempted, by position; 0 during an attempt.
        var countedBytes: [Int64: Int64] = [:]
        var meter = RateMeter()
        /// Whether the run is expanding the session's items into files.
        var isPreparing = false
        var isHistoryForgotten = false
        var localReads = LocalReads()
        /// The errors of the session's streams that wait for disk space, by the position of the item.
        var shortages: [Int64: TransferError] = [:]
        /// The number of bytes that the ended attempts of this run transferred.
        var moved: Int64 = 0
        /// The times of ended attempts that are not reported yet.
        var times = TransferTimes()
        /// The byte counts shown last, below which the statistics do not fall. Reset when a file restarts at byte 0 or turns out to be a
        /// folder.
        var shown: ShownFigures
        var outcome: RunOutcome?
    }

    package let id: SessionID
    package let activation: UInt64
    /// The location of the endpoint that the session used before this run; nil if the session used no endpoint.
    package let endpointBefore: String?
    package let labels: RunLabels
    let names = RunNameClashes()
    /// Signals that the waiting files of the run are due now.
    let backoffsSkipped = ChangeSignal()
    private let startedAt: Duration
    private let isConnected = Atomic(false)
    private let wasAbandoned = Atomic(false)
    private let state: Locked<State>

    /// - Parameters:
    ///   - base: The statistics before this run. The run adds its own duration to ``SessionStatistics/secondsElapsed``.
    ///   - shown: The values that the previous run of the session, in this process, showed.
    package init(
        id: SessionID, activation: UInt64, endpointBefore: String? = nil, base: SessionStatistics, options: SessionOptions,
        context: Data? = nil, shown: ShownFigures = ShownFigures(), labels: RunLabels = RunLabels(.upload), at uptime: Duration
    ) {
        self.labels = labels
        self.id = id
        self.endpointBefore = endpointBefore
        self.activation = activation
        startedAt = uptime
        state = Locked(State(base: base, options: options, context: context, shown: shown))
    }

    /// Abandons the run: the queue no longer waits for it, and its later reports have no effect.
    func abandon() {
        wasAbandoned.store(true, ordering: .sequentiallyConsistent)
    }

    /// The outcome with which the run ends once its files in flight have ended; nil if the outcome is not decided.
    var outcome: RunOutcome? { state.withLock { $0.outcome } }

    func setOutcome(_ outcome: RunOutcome) { state.withLock { $0.outcome = outcome } }

    var isAbandoned: Bool { wasAbandoned.load(ordering: .sequentiallyConsistent) }

    package var options: SessionOptions { state.withLock { $0.options } }

    /// Changes the options, for all later decisions. Changed timeouts apply only to attempts that begin later.
    package func update(_ options: SessionOptions) {
        state.withLock { $0.options = options }
    }

    /// The session's current context value; nil if the session has no context.
    package var context: Data? { state.withLock { $0.context } }

    /// Changes the context value for later attempts.
    package func update(context: Data?) {
        state.withLock { $0.context = context }
    }

    /// Records that a stream begins to wait for disk space, or no longer waits.
    ///
    /// - Parameter error: The error that reports the lack of space; nil if the stream no longer waits.
    func setShortage(_ error: TransferError?, position: Int64) {
        state.withLock { $0.shortages[position] = error }
    }

    /// Records that the run begins to expand the session's items.
    func prepare() {
        state.withLock { $0.isPreparing = true }
    }

    /// Adds files found in the session's folders to the statistics.
    func found(_ growth: ManifestTotals) {
        state.withLock {
            $0.base.files.addSaturated(Int(clamping: growth.files))
            $0.base.filesFailed.addSaturated(Int(clamping: growth.failed))
            $0.base.bytesKnown.addSaturated(growth.bytes)
            $0.base.filesUnsized.addSaturated(Int(clamping: growth.unsized))
        }
    }

    /// Records that the run has expanded the session's items, or can't do so now.
    func prepared() {
        state.withLock { $0.isPreparing = false }
    }

    /// Adds new items of the session to the statistics.
    func grow(_ items: ItemFigures) {
        names.forget()
        state.withLock {
            $0.base.files.addSaturated(items.files)
            $0.base.bytesKnown.addSaturated(items.bytes)
            $0.base.filesUnsized.addSaturated(items.unsized)
        }
    }

    /// Replaces the statistics. Called before the run's first attempt, if the session may have changed after the run read its statistics.
    func replaceStatistics(_ statistics: SessionStatistics) {
        state.withLock { $0.base = statistics }
    }

    /// Makes the queue forget the file histories of this run when the run ends. Called when the session completes, fails, is run again, or
    /// is removed.
    func forgetHistory() {
        state.withLock { $0.isHistoryForgotten = true }
    }

    var isHistoryForgotten: Bool { state.withLock { $0.isHistoryForgotten } }

    /// Records that a call begins to read a local file or folder. Returns the number for ``endLocalRead(_:)``.
    func beginLocalRead(of path: FilePath, at uptime: Duration) -> Int {
        state.withLock { $0.localReads.begin(path, at: uptime) }
    }

    func endLocalRead(_ number: Int) {
        state.withLock { $0.localReads.end(number) }
    }

    /// See ``LocalReads/newLongReads(at:)``.
    func newLongReads(at uptime: Duration) -> (path: FilePath, count: Int)? {
        state.withLock { $0.localReads.newLongReads(at: uptime) }
    }

    /// The reason why the running session makes no progress: a stream lacks disk space, or a local disk does not respond. Nil in all other cases.
    func waitReason(at uptime: Duration) -> WaitReason? {
        state.withLock { state in
            if let shortage = state.shortages.values.first { return .noSpace(shortage) }
            return state.localReads.longReads(at: uptime).map { .diskNotResponding(LocalReads.warning(about: $0.path, count: $0.count)) }
        }
    }

    // MARK: Attempts

    package var activeFiles: [ActiveFile] { state.withLock { Array($0.active.values) } }

    /// Calls the body with each file in flight, under the lock, so that no call follows the end of the file's attempt.
    func forEachActiveFile(_ body: (ActiveFile) -> Void) {
        state.withLock { for file in $0.active.values { body(file) } }
    }

    /// Records the start of an attempt.
    ///
    /// - Parameters:
    ///   - countedBytes: The confirmed bytes of the file that the statistics included when the run began. Used only for the file's first attempt
    ///     in this run.
    ///   - stored: The bytes that the file's checkpoint at the current endpoint covers. `countedBytes` may be larger, for example because another
    ///     endpoint confirmed more bytes. Even then, the shown statistics do not decrease.
    func begin(
        position: Int64, size: Int64?, knownSize: Int64?, countedBytes: Int64, stored: Int64, isSizeGuessed: Bool = false,
        isAwaiting: @escaping @Sendable (Int64) -> Bool = { _ in false }, now: @escaping @Sendable () -> Duration = { .zero }
    ) -> ActiveFile {
        state.withLock {
            let countedBytes = $0.countedBytes[position] ?? countedBytes
            let file = ActiveFile(
                position: position, size: size, start: stored, floor: countedBytes, isSizeGuessed: isSizeGuessed, isAwaiting: isAwaiting,
                now: now)
            Self.count(size, insteadOf: knownSize, in: &$0.base)
            Self.subtract(countedBytes, in: &$0.base)
            $0.countedBytes[position] = 0
            $0.active[position] = file
            return file
        }
    }

    private static func count(_ size: Int64?, insteadOf known: Int64?, in base: inout SessionStatistics) {
        base.bytesKnown = max(0, base.bytesKnown.subtractingSaturated(known ?? 0).addingSaturated(size ?? 0))
        base.filesUnsized += (size == nil ? 1 : 0) - (known == nil ? 1 : 0)
    }

    private static func subtract(_ bytes: Int64, in base: inout SessionStatistics) {
        base.bytesDone = max(0, base.bytesDone.subtractingSaturated(bytes))
    }

    /// Whether a size is valid for a file and keeps the session's total size within its limit.
    func admits(_ size: Int64, insteadOf known: Int64?) -> Bool {
        Self.admits(size, insteadOf: known, bytesKnown)
    }

    private static func admits(_ size: Int64, insteadOf known: Int64?, _ bytesKnown: Int64) -> Bool {
        (0...FileSize.maximum).contains(size)
            && bytesKnown.subtractingSaturated(known ?? 0).addingSaturated(size) <= FileSize.sessionMaximum
    }

    /// Sets the size of a file in flight. Has no effect if ``admits(_:insteadOf:)`` rejects the size. Also has no effect after the attempt
    /// has ended; the next attempt then includes the size in the statistics.
    ///
    /// - Parameter body: Called under the lock if the size changes, so its reports are in the order of the changes.
    func setSize(of file: ActiveFile, _ size: Int64, _ body: () -> Void) {
        guard file.size != size else { return }
        state.withLock { state in
            guard file.size != size, state.active[file.position] === file,
                Self.admits(size, insteadOf: file.size, state.base.bytesKnown)
            else { return }
            Self.count(size, insteadOf: file.size, in: &state.base)
            file.setSize(size)
            body()
        }
    }

    /// Records the end of an attempt and its confirmed bytes.
    func end(_ file: ActiveFile, confirmed: Int64) {
        state.withLock {
            $0.active[file.position] = nil
            $0.base.bytesDone.addSaturated(confirmed)
            $0.countedBytes[file.position] = confirmed
            $0.moved.addSaturated(file.moved)
            $0.times += file.phases.times
        }
    }

    /// Records that a file completed or failed.
    func finish(position: Int64, isCompleted: Bool, isSized: Bool = true) {
        state.withLock {
            // A file that failed before its size was known no longer counts as unsized.
            if !isSized { $0.base.filesUnsized -= 1 }
            $0.countedBytes[position] = nil
            if isCompleted { $0.base.filesDone += 1 } else { $0.base.filesFailed += 1 }
        }
    }

    /// Records that a file turned out to be a remote folder, whose files are not known yet.
    func foundFolder(position: Int64, size: Int64?) {
        state.withLock {
            Self.count(0, insteadOf: size, in: &$0.base)
            Self.subtract($0.countedBytes[position] ?? 0, in: &$0.base)
            $0.shown = ShownFigures()
            $0.countedBytes[position] = nil
        }
    }

    /// Restarts a file at byte 0: removes its previously confirmed bytes from the statistics.
    func restart(_ file: PendingFile) {
        state.withLock {
            Self.subtract($0.countedBytes[file.position] ?? file.confirmed, in: &$0.base)
            $0.shown = ShownFigures()
            $0.countedBytes[file.position] = 0
        }
    }

    // MARK: Connection

    /// Records activity. Calls the body for the first activity since the run began or lost its last connection.
    ///
    /// This method and ``disconnect(_:)`` call their bodies under the same lock, so the reports are in the order of the changes.
    func connect(_ body: () -> Void) {
        guard !isConnected.load(ordering: .relaxed) else { return }
        state.withLock { _ in
            guard !isConnected.exchange(true, ordering: .relaxed) else { return }
            body()
        }
    }

    /// Records a failed attempt, and calls the body. If no other attempt is active, the run is no longer connected.
    ///
    /// - Parameter body: Receives whether no other attempt is active.
    func disconnect(_ body: (_ wasLast: Bool) -> Void) {
        state.withLock { state in
            if state.active.isEmpty { isConnected.store(false, ordering: .relaxed) }
            body(state.active.isEmpty)
        }
    }

    // MARK: Figures

    func sample(at uptime: Duration) -> SessionStatistics {
        state.withLock { state in
            state.meter.sample(bytes: Self.moved(state), at: uptime)
            return Self.statistics(&state)
        }
    }

    package func statistics(at uptime: Duration) -> SessionStatistics {
        state.withLock { state in
            var statistics = Self.statistics(&state)
            statistics.rate = state.meter.rate
            statistics.setElapsed(state.base.secondsElapsed + (uptime - startedAt).inSeconds)
            if state.meter.isReliable, let rate = state.meter.rate, rate > 0,
                let total = statistics.bytesTotal, total > statistics.bytesSent
            {
                statistics.secondsRemaining = Double(total - statistics.bytesSent) / rate
            }
            return statistics
        }
    }

    package var phase: SessionPhase {
        state.withLock { state in
            // The listing of a remote folder is an attempt, too.
            if state.isPreparing, state.active.keys.allSatisfy({ $0 == RemoteFolderExpansion.position }) { return .preparing }
            guard !state.active.isEmpty else { return .connecting }
            if state.active.values.allSatisfy({ file in file.size.map { file.sent >= $0 && $0 > 0 } ?? false }) { return .verifying }
            return state.active.values.contains { $0.sent > 0 } ? .transferring : .connecting
        }
    }

    /// The times of this run's attempts, without the times that ``takeTimes()`` returned.
    var times: TransferTimes {
        state.withLock { state in state.active.values.reduce(into: state.times) { $0 += $1.phases.times } }
    }

    /// Returns the times of ended attempts, which then count as reported.
    func takeTimes() -> TransferTimes {
        state.withLock { state in
            defer { state.times = TransferTimes() }
            return state.times
        }
    }

    /// The total size of the files with a known size, in bytes.
    var bytesKnown: Int64 { state.withLock { $0.base.bytesKnown } }

    /// The current rate in bytes per second; nil if unknown.
    var rate: Double? { state.withLock { $0.meter.rate } }

    func duration(at uptime: Duration) -> Duration { uptime - startedAt }

    /// The number of bytes that attempts of this run transferred. Bytes that two attempts sent count twice.
    var moved: Int64 { state.withLock { Self.moved($0) } }

    private static func moved(_ state: State) -> Int64 {
        state.active.values.reduce(state.moved) { $0.addingSaturated($1.moved) }
    }

    private static func statistics(_ state: inout State) -> SessionStatistics {
        var statistics = state.base
        // While folders are being read, the total size is unknown.
        if state.isPreparing { statistics.filesUnsized += 1 }
        statistics.bytesSent = statistics.bytesDone
        for file in state.active.values {
            let confirmed = file.shownConfirmed
            statistics.bytesDone.addSaturated(confirmed)
            statistics.bytesSent.addSaturated(max(file.shownSent, confirmed))
        }
        statistics.neverFall(below: state.shown)
        state.shown = ShownFigures(statistics)
        return statistics
    }

    /// The byte counts that the run showed last. The session's next run in this process starts with them.
    var shown: ShownFigures {
        state.withLock { state in
            var shown = state.shown
            shown.confirmed = min(state.base.bytesDone, shown.done)
            return shown
        }
    }
}
