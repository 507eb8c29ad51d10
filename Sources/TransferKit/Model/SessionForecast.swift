public import Foundation

/// When a waiting session is expected to start and to end.
public struct SessionForecast: Hashable, Sendable, Codable {
    /// The session.
    public var id: SessionID
    /// When it starts; nil if that depends on something that is not known, such as a person or the rate of another session.
    public var expectedStart: Date?
    /// When it ends; nil if that is not known.
    public var expectedEnd: Date?
}

extension TransferQueue {
    /// How many sessions a forecast tells of.
    private static let forecastCount = 1_000

    /// When the first 1,000 waiting sessions are expected to start and to end, in the order in which they start as things are now.
    ///
    /// What it assumes:
    ///
    /// - Nothing fails, nobody calls anything, and each session that ends completes. Sessions that are told to end have let go.
    /// - Each session moves its bytes at the rate that its account's sessions have now on average; if none of them moves anything, at the rate
    ///   that they had last in this process, or else at that of the other accounts. No such rate, no end: after the queue was opened there is
    ///   none before something moved.
    /// - The rate limits of session, account and queue hold, and are divided equally among those that run together.
    /// - What is paused stays paused and keeps its slot; what is held, blocked, or waits for a transport or for space stays so. It is passed over, in
    ///   a strict queue waited for.
    /// - A folder that was not read yet has no known size, so its session has no known end, and a slot that it holds no known time to be free.
    ///   What can start without that slot is told.
    /// - Sessions that wait for a time or for another session are seen if they are among the first 10,000 of the list.
    ///
    /// If the queue does not run, nothing is known. Takes some milliseconds, and time in proportion to the number of slots.
    ///
    /// - Throws: ``QueueError`` if the store can't be read.
    public func forecast() async throws -> [SessionForecast] {
        await settle()
        let now = configuration.clock.moment
        var outlook = scheduler.outlook(limit: Self.forecastCount, at: now)
        let ids = outlook.waiting.filter { scheduler.sessionIndex[$0.key]?.state == .waiting }.compactMap { session in
            scheduler.sessionIndex[session.key].map { (key: session.key, id: $0.id) }
        }
        let runs = live
        let rates = recentRates()
        let left = try await clientReads.run { try await store.remaining(of: outlook.running.map(\.key) + outlook.waiting.map(\.key)) }
        for index in outlook.running.indices {
            complete(&outlook.running[index], left, rates, run: runs[outlook.running[index].key], at: now)
        }
        for index in outlook.waiting.indices { complete(&outlook.waiting[index], left, rates, run: nil, at: now) }
        let forecast = Forecast(
            queue: outlook.queue, accounts: outlook.accounts, isStrict: outlook.isStrict, running: outlook.running, waiting: outlook.waiting
        )
        return ids.map { key, id in
            let times = forecast.times[key]
            return SessionForecast(id: id, expectedStart: times?.start.map { now.date + $0 }, expectedEnd: times?.end.map { now.date + $0 })
        }
    }

    /// Adds what only the store and the run know.
    private func complete(
        _ session: inout Forecast.Session, _ left: [SessionKey: RemainingWork], _ rates: RecentRates, run: LiveRun?, at now: DualInstant
    ) {
        session.bytes = left[session.key]?.bytes
        session.limit = left[session.key]?.rateLimit.map(Double.init)
        session.rate = rates.rate(of: session.account)
        guard let run else { return }
        let figures = run.statistics(at: now.uptime)
        session.rate = figures.rate.flatMap { $0 > 0 ? $0 : nil } ?? session.rate
        session.bytes =
            run.phase == .preparing
            ? nil : session.bytes.flatMap { bytes in figures.bytesTotal.map { min(bytes, max(0, $0 - figures.bytesSent)) } }
    }

    /// What each account's sessions move, now or last.
    private func recentRates() -> RecentRates {
        var rates = lastRates
        var present: [AccountKey: [Double]] = [:]
        for (key, run) in live {
            guard let account = scheduler.sessionIndex[key]?.account, let rate = run.rate, rate > 0 else { continue }
            present[account, default: []].append(rate)
        }
        for (account, values) in present { rates.set(values.reduce(0, +) / Double(values.count), account: account) }
        return rates
    }
}
