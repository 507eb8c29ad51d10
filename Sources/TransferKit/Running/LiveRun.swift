import TransferCore

/// The figures of a running session: from the store at first, then kept up to date in memory; progress never writes to the store.
final class LiveRun: Sendable {
    private struct State: Sendable {
        var base: SessionStatistics
        var active: [Int64: ActiveFile] = [:]
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

    var activeFiles: [ActiveFile] { state.withLock { Array($0.active.values) } }

    /// An attempt begins; what earlier ones had confirmed of the file was counted in the base until now.
    func begin(_ file: ActiveFile, knownSize: Int64, counted: Int64) {
        state.withLock {
            $0.base.bytesTotal += file.size - knownSize
            $0.base.bytesDone -= counted
            $0.active[file.position] = file
        }
    }

    /// An attempt ended: completed, or with so many bytes confirmed.
    func end(_ file: ActiveFile, confirmed: Int64) {
        state.withLock {
            $0.active[file.position] = nil
            $0.base.bytesDone += confirmed
        }
    }

    /// A file is finished, in one way or the other.
    func finish(isCompleted: Bool) {
        state.withLock {
            if isCompleted { $0.base.filesDone += 1 } else { $0.base.filesFailed += 1 }
        }
    }

    /// Takes what an abandoned life of a file had confirmed out of the figures.
    func forget(bytes: Int64) {
        state.withLock { $0.base.bytesDone -= bytes }
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
