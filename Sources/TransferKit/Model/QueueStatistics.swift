/// The figures of all sessions of a queue together, in whatever state they are; a session that is removed no longer counts.
public struct QueueStatistics: Hashable, Sendable, Codable {
    /// How many files there are. A folder that was not read yet counts as one.
    public var files: Int
    /// How many are completed.
    public var filesDone: Int
    /// How many failed.
    public var filesFailed: Int
    /// The size of all files whose size is known, in bytes.
    public var bytesTotal: Int64
    /// Bytes confirmed by the other ends. It stands still during a long request that the server confirms only at its end.
    public var bytesDone: Int64
    /// Bytes taken by the network, at most ``bytesTotal``: ``bytesDone``, and what is not confirmed yet. It grows during a long request.
    public var bytesSent: Int64
    /// What is left to send of the sessions that run or wait. Others need a person first.
    public var bytesRemaining: Int64
    /// How long anything ran, in seconds, since the store was made: over restarts, without the time in between. Sessions that run together are
    /// not added up.
    public var secondsElapsed: Double
    /// The recent rate of all that runs, in bytes per second; nil unless something runs.
    public var rate: Double?
    /// All bytes that were ever confirmed, also of sessions that were removed since, per second of ``secondsElapsed``; nil before the first.
    public var averageRate: Double?
    /// The time for ``bytesRemaining`` at the recent rate, in seconds; nil when that is unknown.
    public var secondsRemaining: Double?
    /// How many unfinished uploads of sessions that were cancelled, removed or begun anew are still to be removed at servers.
    public var removalsDue: Int
}

extension TransferQueue {
    /// The figures of the whole queue. Takes the same time for a million sessions as for one: totals are kept, not added up.
    ///
    /// - Throws: ``QueueError`` if the store can't be read.
    public func statistics() async throws -> QueueStatistics {
        await settle()
        let now = configuration.clock.now()
        // What is stored of those that run is behind; they are counted as they are.
        let runs = live.compactMap { key, run in scheduler.sessionIndex[key].map { (key: key, state: $0.state, run: run) } }
        let unnoted = scheduler.flags.runTimes.unnotedOfQueue(at: now)
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
        // What sessions showed before they paused stays.
        var kept: Int64 = 0
        for (key, figures) in shown where live[key] == nil {
            guard let state = scheduler.sessionIndex[key]?.state else { continue }
            let unstored = max(0, figures.done - figures.confirmed)
            states[state, default: SessionFigures()].bytesDone.addSaturated(unstored)
            let beyond = max(0, figures.sent - figures.done)
            if state == .waiting || state == .running { sent.addSaturated(beyond) } else { kept.addSaturated(beyond) }
        }
        return QueueStatistics(
            states, inFlight: sent, kept: kept, confirmed: totals.bytesConfirmed + max(0, confirmed), elapsed: totals.running + unnoted,
            rate: throughput.rate(at: now), removalsDue: try await clientReads.run { try await store.discardsAtServers() })
    }
}

extension QueueStatistics {
    /// Also reads what an owner tells that does not know of ``removalsDue``.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        files = try values.decode(Int.self, forKey: .files)
        filesDone = try values.decode(Int.self, forKey: .filesDone)
        filesFailed = try values.decode(Int.self, forKey: .filesFailed)
        bytesTotal = try values.decode(Int64.self, forKey: .bytesTotal)
        bytesDone = try values.decode(Int64.self, forKey: .bytesDone)
        bytesSent = try values.decode(Int64.self, forKey: .bytesSent)
        bytesRemaining = try values.decode(Int64.self, forKey: .bytesRemaining)
        secondsElapsed = try values.decode(Double.self, forKey: .secondsElapsed)
        rate = try values.decodeIfPresent(Double.self, forKey: .rate)
        averageRate = try values.decodeIfPresent(Double.self, forKey: .averageRate)
        secondsRemaining = try values.decodeIfPresent(Double.self, forKey: .secondsRemaining)
        removalsDue = try values.decodeIfPresent(Int.self, forKey: .removalsDue) ?? 0
    }

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
