import Foundation

extension TransferQueue {
    private static let forecastCount = 1_000

    /// Returns the expected start and end of the first 1,000 waiting sessions, in the order in which they start under current conditions.
    ///
    /// Assumptions:
    ///
    /// - No attempt fails, no call changes the queue, and every session completes. A run that was interrupted and has not ended counts as ended.
    /// - A running session keeps its rate. Other sessions transfer at the current average rate of their account's sessions. If no session
    ///   of the account is transferring bytes, the forecast uses the average rate of the account's recent runs in this process, or else of
    ///   all accounts. If no rate is known, as before the first transfer of the process, the end is unknown.
    /// - The rate limits of the session, the account and the queue apply, and concurrent sessions share them equally.
    /// - Paused sessions stay paused and keep their slots. Held sessions do not start. Nor do sessions that have a blocked account, or that lack
    ///   a transport, a permitted network or enough space. The queue skips these sessions; a strict queue waits for them.
    /// - A folder that has not been read yet has an unknown size. The end of its session is unknown, and so is the time when the session's
    ///   slot becomes free. The forecast includes sessions that can start without that slot.
    /// - Sessions that wait for a time or for another session are included if they are among the first 10,000 sessions of the queue.
    ///
    /// If the queue does not run, all times are nil. A forecast takes a few milliseconds, and longer with many slots.
    ///
    /// - Throws: ``QueueError`` if the database can't be read.
    public func forecast() async throws -> [SessionForecast] {
        await waitForEarlierInputs()
        let now = configuration.clock.moment
        var input = scheduler.forecastInput(limit: Self.forecastCount, at: now)
        // The forecast assumes that the current limits of the timetables do not change.
        let clock = configuration.clock
        input.queue.rate = clock.currentLimit(scheduler.flags.rateLimit, scheduler.flags.timetable).map(Double.init)
        for (key, state) in scheduler.accounts where state.account.timetable != nil {
            input.accounts[key]?.rate = clock.currentLimit(state.account.rateLimit, state.account.timetable).map(Double.init)
        }
        let ids = input.waiting.filter { scheduler.sessionIndex[$0.key]?.state == .waiting }.compactMap { session in
            scheduler.sessionIndex[session.key].map { (key: session.key, id: $0.id) }
        }
        let runs = live
        let rates = recentRates()
        let remaining = try await clientReads.run { try await store.remaining(of: input.running.map(\.key) + input.waiting.map(\.key)) }
        for index in input.running.indices {
            complete(&input.running[index], remaining, rates, run: runs[input.running[index].key], at: now)
        }
        for index in input.waiting.indices { complete(&input.waiting[index], remaining, rates, run: nil, at: now) }
        let forecast = Forecast(
            queue: input.queue, accounts: input.accounts, isStrict: input.isStrict, running: input.running, waiting: input.waiting
        )
        return ids.map { key, id in
            let times = forecast.times[key]
            return SessionForecast(id: id, expectedStart: times?.start.map { now.date + $0 }, expectedEnd: times?.end.map { now.date + $0 })
        }
    }

    /// Sets the remaining bytes, the rate limit and the rate of a session in the forecast, because the scheduler does not know them.
    private func complete(
        _ session: inout Forecast.Session, _ remaining: [SessionKey: RemainingWork], _ rates: RecentRates, run: LiveRun?,
        at now: DualInstant
    ) {
        session.bytes = remaining[session.key]?.bytes
        session.limit = remaining[session.key]?.rateLimit.map(Double.init)
        session.rate = rates.rate(of: session.account)
        guard let run else { return }
        let figures = run.statistics(at: now.uptime)
        session.rate = figures.rate.flatMap { $0 > 0 ? $0 : nil } ?? session.rate
        session.bytes =
            run.phase == .preparing
            ? nil : session.bytes.flatMap { bytes in figures.bytesTotal.map { min(bytes, max(0, $0 - figures.bytesSent)) } }
    }

    private func recentRates() -> RecentRates {
        var rates = lastRates
        var currentRates: [AccountKey: [Double]] = [:]
        for (key, run) in live {
            guard let account = scheduler.sessionIndex[key]?.account, let rate = run.rate, rate > 0 else { continue }
            currentRates[account, default: []].append(rate)
        }
        for (account, values) in currentRates { rates.set(values.reduce(0, +) / Double(values.count), account: account) }
        return rates
    }
}
