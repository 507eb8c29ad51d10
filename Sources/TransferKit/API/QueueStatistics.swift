/// The combined statistics of all sessions of a queue, in all states. Removed sessions count only in ``secondsElapsed`` and
/// ``averageRate``.
public struct QueueStatistics: Hashable, Sendable, Codable {
    /// The number of files. A folder that has not been read yet counts as one file.
    public var files: Int
    /// The number of completed files.
    public var filesDone: Int
    /// The number of failed files.
    public var filesFailed: Int
    /// The size of all files of known size, in bytes.
    public var bytesTotal: Int64
    /// The number of confirmed bytes; see ``SessionStatistics/bytesDone``. Stays constant during a long request that the server confirms
    /// only at the end.
    public var bytesDone: Int64
    /// The number of bytes that the network accepted or delivered, whether confirmed or not, at most ``bytesTotal``. Unlike ``bytesDone``, it
    /// grows during a long request.
    public var bytesSent: Int64
    /// The number of bytes that running and waiting sessions have not transferred yet. Excludes files of unknown size, and sessions that
    /// need user action first.
    public var bytesRemaining: Int64
    /// The total time during which at least one session ran, in seconds, including earlier processes.
    public var secondsElapsed: Double
    /// The recent rate of all running sessions together, in bytes per second; nil if no session runs, or if the rate is unknown.
    public var rate: Double?
    /// The average rate in bytes per second: all confirmed bytes, including those of removed sessions, divided by ``secondsElapsed``. Nil
    /// before the first confirmed byte.
    public var averageRate: Double?
    /// The time for ``bytesRemaining`` at the recent rate, in seconds; nil if it is unknown.
    public var secondsRemaining: Double?
    /// The number of pending removals of unfinished uploads from servers, for example after sessions were cancelled or files restarted.
    public var removalsDue: Int
}

extension TransferQueue {
    /// Returns the statistics of the whole queue. The call is fast even for many sessions, because the store keeps totals.
    ///
    /// - Throws: ``QueueError`` if the store can't be read.
    public func statistics() async throws -> QueueStatistics {
        await settle()
        let now = configuration.clock.now()
        // The stored figures of running sessions are outdated, so their live figures are used instead.
        let runs = live.compactMap { key, run in scheduler.sessionIndex[key].map { (key: key, state: $0.state, run: run) } }
        let unrecorded = scheduler.flags.runTimes.unrecordedOfQueue(at: now)
        let totals = try await clientReads.run { try await store.totals(leavingOut: runs.map(\.key)) }
        var states = totals.states
        var (confirmed, sent) = (-totals.leftOut.bytesDone, Int64(0))
        for (_, state, run) in runs {
            let figures = run.statistics(at: now)
            throughput.sample(run.activation, moved: run.moved, at: now)
            states[state, default: SessionFigures()] += SessionFigures(figures)
            confirmed += figures.bytesDone
            sent += figures.bytesSent - figures.bytesDone
        }
        // When a run ends, some bytes that its statistics reported may not be stored. They still count, so that the totals never decrease.
        var kept: Int64 = 0
        for (key, figures) in shown where live[key] == nil {
            guard let state = scheduler.sessionIndex[key]?.state else { continue }
            let unstored = max(0, figures.done - figures.confirmed)
            states[state, default: SessionFigures()].bytesDone.addSaturated(unstored)
            let beyond = max(0, figures.sent - figures.done)
            if state == .waiting || state == .running { sent.addSaturated(beyond) } else { kept.addSaturated(beyond) }
        }
        return QueueStatistics(
            states, inFlight: sent, kept: kept, confirmed: totals.bytesConfirmed + max(0, confirmed), elapsed: totals.running + unrecorded,
            rate: throughput.rate(at: now), removalsDue: try await clientReads.run { try await store.discardsAtServers() })
    }
}

extension QueueStatistics {
    /// - Parameters:
    ///   - inFlight: The number of unconfirmed bytes that running and waiting sessions have sent.
    ///   - kept: The same number for sessions in all other states.
    ///   - confirmed: The number of bytes confirmed since the store was created, including those of removed sessions.
    init(
        _ states: [SessionState: SessionFigures], inFlight: Int64, kept: Int64, confirmed: Int64, elapsed: Duration, rate: Double?,
        removalsDue: Int
    ) {
        self.removalsDue = removalsDue
        let all = states.values.reduce(into: SessionFigures()) { $0 += $1 }
        let pending = [states[.waiting], states[.running]].compactMap(\.self).reduce(into: SessionFigures()) { $0 += $1 }
        files = Int(clamping: all.files)
        filesDone = Int(clamping: all.filesDone)
        filesFailed = Int(clamping: all.filesFailed)
        bytesTotal = max(0, all.bytesTotal)
        bytesDone = max(0, all.bytesDone)
        bytesSent = min(bytesDone.addingSaturated(inFlight).addingSaturated(kept), max(bytesDone, bytesTotal))
        bytesRemaining = max(0, pending.bytesTotal - pending.bytesDone - inFlight)
        secondsElapsed = elapsed.inSeconds
        self.rate = rate
        averageRate = confirmed > 0 && secondsElapsed > 0 ? Double(confirmed) / secondsElapsed : nil
        if let rate, rate > 0 { secondsRemaining = Double(bytesRemaining) / rate }
    }
}
