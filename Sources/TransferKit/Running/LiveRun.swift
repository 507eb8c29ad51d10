package import Foundation
import Locking
import Synchronization
import TransferCore

/// What is known of a running session: its options, and its figures, from the store at first, then kept up to date in memory; progress never
/// writes to the store.
package final class LiveRun: Sendable {
    private struct State: Sendable {
        var base: SessionStatistics
        var options: SessionOptions
        /// The app's own value.
        var context: Data?
        var active: [Int64: ActiveFile] = [:]
        /// How much of each file that was attempted in this run, and is not finished, is part of the base at present.
        var counted: [Int64: Int64] = [:]
        var meter = RateMeter()
        /// Whether the session's folders are being read.
        var isPreparing = false
        var isHistoryForgotten = false
        /// Bytes that attempts of this run moved that are over.
        var moved: Int64 = 0
        /// What was shown so far: figures fall only when a file begins again at byte 0.
        var shown: ShownFigures
    }

    package let id: SessionID
    package let activation: UInt64
    /// The location of the endpoint that the session used before this run.
    package let endpointBefore: String?
    private let startedAt: Duration
    private let isConnected = Atomic(false)
    private let wasAbandoned = Atomic(false)
    private let state: Locked<State>

    /// - Parameters:
    ///   - base: The figures before this run. Its ``SessionStatistics/secondsElapsed`` goes on from there.
    ///   - shown: What the session's last run in this process showed.
    package init(
        id: SessionID, activation: UInt64, endpointBefore: String? = nil, base: SessionStatistics, options: SessionOptions,
        context: Data? = nil, shown: ShownFigures = ShownFigures(), at uptime: Duration
    ) {
        self.id = id
        self.endpointBefore = endpointBefore
        self.activation = activation
        startedAt = uptime
        state = Locked(State(base: base, options: options, context: context, shown: shown))
    }

    /// The queue waits for the run no longer: its later reports have no effect.
    func abandon() {
        wasAbandoned.store(true, ordering: .sequentiallyConsistent)
    }

    var isAbandoned: Bool { wasAbandoned.load(ordering: .sequentiallyConsistent) }

    /// What the session wants now.
    package var options: SessionOptions { state.withLock { $0.options } }

    /// Changes what the session wants; the stall watch sees it at its next sample, everything else at its next decision.
    package func update(_ options: SessionOptions) {
        state.withLock { $0.options = options }
    }

    /// The app's own value of the session, as it is now.
    package var context: Data? { state.withLock { $0.context } }

    /// Changes the app's own value; attempts that begin later see it.
    package func update(context: Data?) {
        state.withLock { $0.context = context }
    }

    /// The session's folders are being read.
    func prepare() {
        state.withLock { $0.isPreparing = true }
    }

    /// What was read of the session's folders made its figures grow.
    func found(_ growth: ManifestTotals) {
        state.withLock {
            $0.base.files.addSaturated(Int(clamping: growth.files))
            $0.base.filesFailed.addSaturated(Int(clamping: growth.failed))
            $0.base.bytesKnown.addSaturated(growth.bytes)
            $0.base.filesUnsized.addSaturated(Int(clamping: growth.unsized))
        }
    }

    /// The session's folders were read, as far as they can be now.
    func prepared() {
        state.withLock { $0.isPreparing = false }
    }

    /// Items were added to the session.
    func grow(_ items: ItemFigures) {
        state.withLock {
            $0.base.files.addSaturated(items.files)
            $0.base.bytesKnown.addSaturated(items.bytes)
            $0.base.filesUnsized.addSaturated(items.unsized)
        }
    }

    /// The session changed before anything of this run was counted.
    func rebase(_ statistics: SessionStatistics) {
        state.withLock { $0.base = statistics }
    }

    /// The session was told to begin anew: what this run remembers of failures no longer counts.
    func forgetHistory() {
        state.withLock { $0.isHistoryForgotten = true }
    }

    var isHistoryForgotten: Bool { state.withLock { $0.isHistoryForgotten } }

    // MARK: Attempts

    package var activeFiles: [ActiveFile] { state.withLock { Array($0.active.values) } }

    /// An attempt begins.
    ///
    /// - Parameters:
    ///   - counted: How much of the file was part of the figures when the run began.
    ///   - stored: What its checkpoint at the present endpoint vouches for. Another one, or an earlier attempt, may have told of more, and
    ///     figures never go back.
    func begin(
        position: Int64, size: Int64?, knownSize: Int64?, counted: Int64, stored: Int64, isSizeGuessed: Bool = false,
        isAwaiting: @escaping @Sendable (Int64) -> Bool = { _ in false }
    ) -> ActiveFile {
        state.withLock {
            let counted = $0.counted[position] ?? counted
            let file = ActiveFile(
                position: position, size: size, start: stored, floor: counted, isSizeGuessed: isSizeGuessed, isAwaiting: isAwaiting)
            Self.count(size, insteadOf: knownSize, in: &$0.base)
            Self.takeBack(counted, in: &$0.base)
            $0.counted[position] = 0
            $0.active[position] = file
            return file
        }
    }

    private static func count(_ size: Int64?, insteadOf known: Int64?, in base: inout SessionStatistics) {
        base.bytesKnown = max(0, base.bytesKnown.subtractingSaturated(known ?? 0).addingSaturated(size ?? 0))
        base.filesUnsized += (size == nil ? 1 : 0) - (known == nil ? 1 : 0)
    }

    /// Confirmed bytes of a file no longer count.
    private static func takeBack(_ bytes: Int64, in base: inout SessionStatistics) {
        base.bytesDone = max(0, base.bytesDone.subtractingSaturated(bytes))
    }

    /// Whether the files of the session may come to so many more bytes.
    func admits(_ size: Int64, insteadOf known: Int64?) -> Bool {
        Self.admits(size, insteadOf: known, bytesKnown)
    }

    private static func admits(_ size: Int64, insteadOf known: Int64?, _ bytesKnown: Int64) -> Bool {
        (0...FileSize.maximum).contains(size)
            && bytesKnown.subtractingSaturated(known ?? 0).addingSaturated(size) <= FileSize.sessionMaximum
    }

    /// The size of a file in flight became known. That of an attempt that is over counts when the next one begins.
    ///
    /// - Parameter body: Called under the lock if that is news, so that what it tells comes in the order of what happened.
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

    /// An attempt ended with so many bytes confirmed.
    func end(_ file: ActiveFile, confirmed: Int64) {
        state.withLock {
            $0.active[file.position] = nil
            $0.base.bytesDone.addSaturated(confirmed)
            $0.counted[file.position] = confirmed
            $0.moved.addSaturated(file.moved)
        }
    }

    /// A file is finished, in one way or the other.
    func finish(position: Int64, isCompleted: Bool, isSized: Bool = true) {
        state.withLock {
            // What failed before its size was known is not waited for any more.
            if !isSized { $0.base.filesUnsized -= 1 }
            $0.counted[position] = nil
            if isCompleted { $0.base.filesDone += 1 } else { $0.base.filesFailed += 1 }
        }
    }

    /// What was to be received as a file is a folder, whose files are yet to be found.
    func foundFolder(position: Int64, size: Int64?) {
        state.withLock {
            Self.count(0, insteadOf: size, in: &$0.base)
            Self.takeBack($0.counted[position] ?? 0, in: &$0.base)
            $0.shown = ShownFigures()
            $0.counted[position] = nil
        }
    }

    /// A file begins anew at byte 0: what its abandoned life had confirmed is taken out of the figures.
    func restart(_ file: PendingFile) {
        state.withLock {
            Self.takeBack($0.counted[file.position] ?? file.confirmed, in: &$0.base)
            $0.shown = ShownFigures()
            $0.counted[file.position] = 0
        }
    }

    // MARK: Connection

    /// Something moved: calls the body if that is news, since the run began or since its last connection was lost.
    ///
    /// The body is called under the lock, as that of ``disconnect(_:)``, so that what they tell comes in the order of what happened.
    func connect(_ body: () -> Void) {
        guard !isConnected.load(ordering: .relaxed) else { return }
        state.withLock { _ in
            guard !isConnected.exchange(true, ordering: .relaxed) else { return }
            body()
        }
    }

    /// An attempt failed.
    ///
    /// - Parameter body: Told whether no other attempt goes on.
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
            if let rate = state.meter.rate, rate > 0, let total = statistics.bytesTotal {
                statistics.secondsRemaining = Double(max(0, total - statistics.bytesSent)) / rate
            }
            return statistics
        }
    }

    package var phase: SessionPhase {
        state.withLock { state in
            if state.isPreparing { return .preparing }
            guard !state.active.isEmpty else { return .connecting }
            if state.active.values.allSatisfy({ file in file.size.map { file.sent >= $0 && $0 > 0 } ?? false }) { return .verifying }
            return state.active.values.contains { $0.sent > 0 } ? .transferring : .connecting
        }
    }

    /// What the files of known size come to, in bytes.
    var bytesKnown: Int64 { state.withLock { $0.base.bytesKnown } }

    /// Bytes per second at present; nil if not known.
    var rate: Double? { state.withLock { $0.meter.rate } }

    func duration(at uptime: Duration) -> Duration { uptime - startedAt }

    /// Bytes that attempts of this run moved; what was sent twice counts twice.
    var moved: Int64 { state.withLock { Self.moved($0) } }

    private static func moved(_ state: State) -> Int64 {
        state.active.values.reduce(state.moved) { $0.addingSaturated($1.moved) }
    }

    private static func statistics(_ state: inout State) -> SessionStatistics {
        var statistics = state.base
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

    /// What the run showed last.
    var shown: ShownFigures {
        state.withLock { state in
            var shown = state.shown
            shown.confirmed = min(state.base.bytesDone, shown.done)
            return shown
        }
    }
}

/// Bytes of a session that were shown as sent and as confirmed.
///
/// What a connection had taken, and the other end had not confirmed, is sent again after a pause. A person does not see the figures fall for it.
package struct ShownFigures: Sendable {
    fileprivate(set) var done: Int64 = 0
    fileprivate(set) var sent: Int64 = 0
    /// What the store has of them, once the run is over.
    fileprivate(set) var confirmed: Int64 = 0

    package init() {}

    init(_ statistics: SessionStatistics) {
        done = statistics.bytesDone
        sent = statistics.bytesSent
    }
}

extension SessionStatistics {
    /// Keeps the bytes from falling below those shown before, or rising above the known size.
    mutating func neverFall(below shown: ShownFigures) {
        bytesDone = max(bytesDone, shown.done)
        bytesSent = max(bytesSent, bytesDone, shown.sent)
        guard filesUnsized == 0 else {
            // Of a stream as much is known as was sent.
            bytesKnown = max(bytesKnown, bytesSent)
            return
        }
        bytesDone = min(bytesDone, bytesKnown)
        bytesSent = min(bytesSent, bytesKnown)
    }
}
