import Foundation
import TransferCore

extension Scheduler {
    /// The current state of the queue, as the input of a forecast. The caller must add the bytes and rates of the sessions.
    package struct ForecastInput: Sendable {
        package var queue: Forecast.Limits
        /// The limits of the accounts of the ``running`` and ``waiting`` sessions.
        package var accounts: [AccountKey: Forecast.Limits]
        package var isStrict: Bool
        package var running: [Forecast.Session]
        /// The waiting sessions in the order in which they start. In a strict queue, includes sessions that can't start but block later sessions.
        package var waiting: [Forecast.Session]
    }

    /// In a queue without strict order, a forecast includes waiting sessions that are not eligible only if they are among this number of
    /// sessions at the start of the order.
    private static let examinedSessions = 10_000

    package func forecastInput(limit: Int, at now: DualInstant) -> ForecastInput {
        // Includes paused sessions whose runs have not ended.
        let pausedWithSlot = sessionIndex.paused.compactMap { sessionIndex[$0] }.filter { $0.holdsSlot && !$0.freesSlot }
        let running = sessionIndex.live.sorted().compactMap { sessionIndex[$0] }.filter {
            $0.state == .running && !$0.conditions.contains(.stopping)
        }
        let isStrict = settings.ordering == .strict
        let candidates = (isStrict ? unfinished(limit) : waiting(limit)).sorted { startStanding($0) < startStanding($1) }
        let listed = Array(candidates.prefix(limit))
        var limits: [AccountKey: Forecast.Limits] = [:]
        for key in Set((running + listed).map(\.account)) {
            guard let account = accounts[key]?.account else { continue }
            limits[key] = Forecast.Limits(
                sessions: account.maxConcurrentSessions, rate: account.rateLimit.map(Double.init),
                paused: pausedWithSlot.count { $0.account == key })
        }
        return ForecastInput(
            queue: Forecast.Limits(sessions: maxConcurrentSessions, rate: flags.rateLimit.map(Double.init), paused: pausedWithSlot.count),
            accounts: limits, isStrict: isStrict,
            running: running.map { Forecast.Session(key: $0.key, account: $0.account) },
            waiting: listed.map { session($0, at: now) })
    }

    /// The first eligible sessions, and the other waiting sessions near the start of the order.
    private func waiting(_ limit: Int) -> [Entry] {
        var keys = Set(sessionIndex.first(limit))
        for key in sessionIndex.order.prefix(Self.examinedSessions) where sessionIndex[key]?.state == .waiting { keys.insert(key) }
        return keys.compactMap { sessionIndex[$0] }
    }

    /// The sessions for the forecast of a strict queue: the unfinished sessions that do not run, because each blocks later sessions.
    private func unfinished(_ limit: Int) -> [Entry] {
        let prioritized = sessionIndex.prioritized.keys.prefix(limit).filter { sessionIndex[$0]?.startPriority == .now }
        let keys = Set(sessionIndex.unfinished.prefix(limit)).union(prioritized)
        return keys.compactMap { sessionIndex[$0] }.filter { $0.state != .running }
    }

    /// The standing that a session will have when it can start.
    private func startStanding(_ entry: Entry) -> SessionIndex.Standing {
        var standing = sessionIndex.standing(entry)
        if settings.ordering == .strict, standing.startPriority != .now { standing.startPriority = .none }
        if entry.conditions.contains(.displaced) { standing.startPriority = min(standing.startPriority, .released) }
        return standing
    }

    private func session(_ entry: Entry, at now: DualInstant) -> Forecast.Session {
        var session = Forecast.Session(key: entry.key, account: entry.account)
        let details = sessionIndex.details(entry.key)
        let isFirst = sessionIndex.unfinished.first == entry.key
        session.passes = entry.startPriority == .now || settings.ordering == .strict && hasTurn(entry) && !isFirst
        session.isStuck = entry.state != .waiting || flags.mode != .running || entry.conditions.contains(.noSpace)
        var waits: [Duration] = []
        if entry.conditions.contains(.backoff) { waits += [details.retryAt?.uptime].compactMap(\.self).map { $0 - now.uptime } }
        if entry.conditions.contains(.early) {
            waits += [details.notBefore].compactMap(\.self).map { .seconds($0.timeIntervalSince(now.date)) }
        }
        if entry.conditions.contains(.yielded) { waits += [details.yieldedUntil].compactMap(\.self).map { $0 - now.uptime } }
        switch ability(of: entry, at: now) {
        case .able: break
        case .unavailable(let until?): waits.append(until - now.uptime)
        case .unavailable(nil), .blocked, .transportMissing, .networkConstrained, .diskBelowFloor, .runsNotEnded: session.isStuck = true
        }
        session.wait = max(.zero, waits.max() ?? .zero)
        if let preemptor = details.displacedBy { session.predecessors.append(preemptor) }
        if let dependency = details.dependency {
            if let other = sessionIndex.key(of: dependency.session), sessionIndex[other]?.state.isEnded == false {
                session.predecessors.append(other)
            } else {
                session.isStuck = true
            }
        }
        return session
    }
}
