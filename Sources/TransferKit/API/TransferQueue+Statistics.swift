extension TransferQueue {
    /// Returns the statistics of the whole queue. The call is fast even with many sessions, because the database contains the totals.
    ///
    /// - Throws: ``QueueError`` if the database can't be read.
    public func statistics() async throws -> QueueStatistics {
        await waitForEarlierInputs()
        let now = configuration.clock.now()
        // The stored figures of running sessions are outdated. Use their live figures instead.
        let runs = live.compactMap { key, run in scheduler.sessionIndex[key].map { (key: key, state: $0.state, run: run) } }
        let unrecordedTime = scheduler.flags.runTimes.unrecordedOfQueue(at: now)
        let totals = try await clientReads.run { try await store.totals(leavingOut: runs.map(\.key)) }
        var states = totals.states
        states[.draft] = nil
        var (done, sent) = (Int64(0), Int64(0))
        for (_, state, run) in runs {
            let figures = run.statistics(at: now)
            throughput.sample(run.activation, moved: run.moved, at: now)
            states[state, default: SessionFigures()] += SessionFigures(figures)
            done.addSaturated(figures.bytesDone)
            sent.addSaturated(max(0, figures.bytesSent.subtractingSaturated(figures.bytesDone)))
        }
        // The bytes that running sessions have confirmed and not stored yet.
        let unrecordedBytes = max(0, done.subtractingSaturated(totals.leftOut.bytesDone))
        // When a run ends, some bytes that its statistics reported may not be stored. They still count, so that the totals never decrease.
        var kept: Int64 = 0
        for (key, figures) in shown where live[key] == nil {
            guard let state = scheduler.sessionIndex[key]?.state else { continue }
            let unstored = max(0, figures.done.subtractingSaturated(figures.confirmed))
            states[state, default: SessionFigures()].bytesDone.addSaturated(unstored)
            let beyond = max(0, figures.sent.subtractingSaturated(figures.done))
            if state == .waiting || state == .running { sent.addSaturated(beyond) } else { kept.addSaturated(beyond) }
        }
        return QueueStatistics(
            states, inFlight: sent, kept: kept, confirmed: totals.bytesConfirmed.addingSaturated(unrecordedBytes),
            elapsed: totals.running + unrecordedTime, rate: throughput.rate(at: now),
            removalsDue: try await clientReads.run { try await store.discardsAtServers() })
    }
}

extension QueueStatistics {
    /// Creates the statistics of a queue.
    ///
    /// - Parameters:
    ///   - states: The totals of the sessions in each state.
    ///   - inFlight: The number of unconfirmed bytes that running and waiting sessions have sent.
    ///   - kept: The number of unconfirmed bytes that sessions in all other states have sent.
    ///   - confirmed: The number of bytes confirmed since the database was created, including removed sessions.
    ///   - elapsed: The time since the database was created during which at least one session ran.
    ///   - rate: The recent rate of all running sessions together, in bytes per second; nil if it is unknown.
    ///   - removalsDue: The number of pending removals of unfinished uploads from servers.
    init(
        _ states: [SessionState: SessionFigures], inFlight: Int64, kept: Int64, confirmed: Int64, elapsed: Duration, rate: Double?,
        removalsDue: Int
    ) {
        self.init(removalsDue: removalsDue)
        let all = states.values.reduce(into: SessionFigures()) { $0 += $1 }
        let pending = [states[.waiting], states[.running]].compactMap(\.self).reduce(into: SessionFigures()) { $0 += $1 }
        files = Int(clamping: all.files)
        filesDone = Int(clamping: all.filesDone)
        filesFailed = Int(clamping: all.filesFailed)
        bytesTotal = max(0, all.bytesTotal)
        bytesDone = max(0, all.bytesDone)
        bytesSent = min(bytesDone.addingSaturated(inFlight).addingSaturated(kept), max(bytesDone, bytesTotal))
        bytesRemaining = max(0, pending.bytesTotal.subtractingSaturated(pending.bytesDone).subtractingSaturated(inFlight))
        secondsElapsed = elapsed.inSeconds
        self.rate = rate
        averageRate = confirmed > 0 && secondsElapsed > 0 ? Double(confirmed) / secondsElapsed : nil
        if let rate, rate > 0 { secondsRemaining = Double(bytesRemaining) / rate }
    }
}
