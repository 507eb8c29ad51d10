import TransferCore

/// The figures of a running session: from the store at first, then kept up to date in memory; progress never writes to the store.
final class LiveRun: Sendable {
    private struct State: Sendable {
        var base: SessionStatistics
        var active: [Int64: ActiveFile] = [:]
        /// How much of each file that was attempted in this run is part of the base at present.
        var counted: [Int64: Int64] = [:]
        var meter = RateMeter()
        /// What was confirmed before this run.
        var bytesAtStart: Int64
    }

    let id: SessionID
    let activation: UInt64
    private let startedAt: Duration
    private let state: Locked<State>

    init(id: SessionID, activation: UInt64, base: SessionStatistics, at uptime: Duration) {
        self.id = id
        self.activation = activation
        startedAt = uptime
        state = Locked(State(base: base, bytesAtStart: base.bytesDone))
    }

    /// Takes changed options.
    func update(_ options: SessionOptions) {}

    var activeFiles: [ActiveFile] { state.withLock { Array($0.active.values) } }

    /// An attempt begins.
    ///
    /// - Parameters:
    ///   - counted: How much of the file was part of the figures when the run began.
    ///   - stored: What its checkpoint at the present endpoint vouches for. Another one, or an earlier attempt, may have told of more, and
    ///     figures never go back.
    func begin(position: Int64, size: Int64, knownSize: Int64, counted: Int64, stored: Int64) -> ActiveFile {
        state.withLock {
            let counted = $0.counted[position] ?? counted
            let file = ActiveFile(position: position, size: size, start: max(counted, stored))
            $0.base.bytesTotal += size - knownSize
            $0.base.bytesDone -= counted
            $0.counted[position] = 0
            $0.active[position] = file
            return file
        }
    }

    /// An attempt ended with so many bytes confirmed.
    func end(_ file: ActiveFile, confirmed: Int64) {
        state.withLock {
            $0.active[file.position] = nil
            $0.base.bytesDone += confirmed
            $0.counted[file.position] = confirmed
        }
    }

    /// A file is finished, in one way or the other.
    func finish(position: Int64, isCompleted: Bool) {
        state.withLock {
            $0.counted[position] = nil
            if isCompleted { $0.base.filesDone += 1 } else { $0.base.filesFailed += 1 }
        }
    }

    /// A file begins anew at byte 0: what its abandoned life had confirmed is taken out of the figures.
    func restart(position: Int64) {
        state.withLock {
            $0.base.bytesDone -= $0.counted[position] ?? 0
            $0.counted[position] = 0
        }
    }

    func sample(at uptime: Duration) -> SessionStatistics {
        state.withLock { state in
            let statistics = Self.statistics(state)
            state.meter.sample(bytes: statistics.bytesSent, at: uptime)
            return statistics
        }
    }

    func statistics(at uptime: Duration) -> SessionStatistics {
        state.withLock { state in
            var statistics = Self.statistics(state)
            statistics.rate = state.meter.rate
            let seconds = (uptime - startedAt).inSeconds
            let moved = statistics.bytesSent - state.bytesAtStart
            statistics.averageRate = seconds > 0 && moved > 0 ? Double(moved) / seconds : nil
            if let rate = state.meter.rate, rate > 0 {
                statistics.secondsRemaining = Double(max(0, statistics.bytesTotal - statistics.bytesSent)) / rate
            }
            return statistics
        }
    }

    var phase: SessionPhase {
        state.withLock { state in
            guard !state.active.isEmpty else { return .connecting }
            if state.active.values.allSatisfy({ $0.sent >= $0.size && $0.size > 0 }) { return .verifying }
            return state.active.values.contains { $0.sent > 0 } ? .transferring : .connecting
        }
    }

    private static func statistics(_ state: State) -> SessionStatistics {
        var statistics = state.base
        statistics.bytesSent = statistics.bytesDone
        for file in state.active.values {
            statistics.bytesDone += file.confirmed
            statistics.bytesSent += file.sent
        }
        return statistics
    }
}
