/// A forecast of the times at which sessions start and end, if nothing changes except the time. A pure value; all times are relative to
/// now.
///
/// The forecast simulates the queue from one start or end to the next:
/// - The next session to start is the first session in the given order that can start. A session can start if it is not stuck, its wait is over, its
///   predecessors have ended, and both the queue and the session's account have a free slot. In a strict queue, a session can't start before
///   an earlier session that can't start, unless ``Session/passes`` is true.
/// - Each session transfers bytes at its given rate, up to its limit. If concurrent sessions exceed a limit of their account or of the
///   queue, they get equal shares of the limit. A share that a session can't use goes to the other sessions.
/// - No attempt fails, sessions end as completed, and paused sessions keep their slots.
/// - A session with an unknown size, or with remaining bytes but no known rate, never ends. It keeps its slot, and its dependents never
///   start.
package struct Forecast: Sendable {
    /// A running session, a waiting session, or a session that blocks later sessions of a strict queue.
    package struct Session: Sendable, Equatable {
        package var key: SessionKey
        package var account: AccountKey
        /// The remaining bytes; nil if unknown.
        package var bytes: Int64?
        /// The rate that the session would have without rate limits, in bytes per second; nil if unknown.
        package var rate: Double?
        /// The session's own rate limit, in bytes per second; nil for no limit.
        package var limit: Double?
        /// The minimum time until the session can start.
        package var wait = Duration.zero
        /// The sessions that must end before this session can start.
        package var predecessors: [SessionKey] = []
        /// Whether the session waits for an event that the forecast can't predict.
        package var isStuck = false
        /// Whether the session may start before earlier sessions of a strict queue.
        package var passes = false

        package init(key: SessionKey, account: AccountKey, bytes: Int64? = nil, rate: Double? = nil, limit: Double? = nil) {
            self.key = key
            self.account = account
            self.bytes = bytes
            self.rate = rate
            self.limit = limit
        }
    }

    /// The limits of the queue or of an account.
    package struct Limits: Sendable, Equatable {
        /// The maximum number of running sessions; nil for no limit.
        package var sessions: Int?
        /// The rate limit, in bytes per second; nil for no limit.
        package var rate: Double?
        /// The number of slots that paused sessions keep.
        package var paused = 0

        package init(sessions: Int? = nil, rate: Double? = nil, paused: Int = 0) {
            self.sessions = sessions
            self.rate = rate
            self.paused = paused
        }
    }

    /// The times, relative to now, at which a session starts and ends.
    package struct Times: Sendable, Equatable {
        /// Nil if unknown, and for a session that already runs.
        package var start: Duration?
        /// Nil if unknown.
        package var end: Duration?

        package init(start: Duration? = nil, end: Duration? = nil) {
            self.start = start
            self.end = end
        }
    }

    private struct Run {
        var session: Session
        /// The remaining bytes; nil if unknown.
        var remainingBytes: Double?
        var rate = 0.0
    }

    private let queue: Limits
    private let accounts: [AccountKey: Limits]
    private let isStrict: Bool
    private var waiting: [Session]
    private var runs: [Run]
    private var now = 0.0
    private var ended: Set<SessionKey> = []
    package private(set) var times: [SessionKey: Times] = [:]

    /// Simulates the queue, and stores the result in ``times``.
    ///
    /// - Parameters:
    ///   - running: The running sessions.
    ///   - waiting: The waiting sessions, in the order in which they start.
    package init(queue: Limits, accounts: [AccountKey: Limits] = [:], isStrict: Bool = false, running: [Session], waiting: [Session]) {
        self.queue = queue
        self.accounts = accounts
        self.isStrict = isStrict
        self.waiting = waiting
        runs = running.map { Run(session: $0, remainingBytes: $0.bytes.map(Double.init)) }
        simulate()
    }

    private mutating func simulate() {
        repeat {
            start()
            assignRates()
        } while advance()
    }

    private mutating func start() {
        var stillWaiting: [Session] = []
        var mayPass = true
        for session in waiting {
            guard mayPass || session.passes, isReady(session), hasSlot(session.account) else {
                stillWaiting.append(session)
                if isStrict, !session.passes { mayPass = false }
                continue
            }
            times[session.key] = Times(start: .seconds(now))
            runs.append(Run(session: session, remainingBytes: session.bytes.map(Double.init)))
        }
        waiting = stillWaiting
    }

    private func isReady(_ session: Session) -> Bool {
        !session.isStuck && session.wait.inSeconds <= now && session.predecessors.allSatisfy { ended.contains($0) }
    }

    private func hasSlot(_ account: AccountKey) -> Bool {
        if let limit = queue.sessions, runs.count + queue.paused >= limit { return false }
        guard let limits = accounts[account], let limit = limits.sessions else { return true }
        return runs.count { $0.session.account == account } + limits.paused < limit
    }

    private mutating func assignRates() {
        for index in runs.indices {
            runs[index].rate = min(runs[index].session.rate ?? 0, runs[index].session.limit ?? .infinity)
        }
        for (account, limits) in accounts {
            guard let rate = limits.rate else { continue }
            divide(rate, among: runs.indices.filter { runs[$0].session.account == account })
        }
        if let rate = queue.rate { divide(rate, among: Array(runs.indices)) }
    }

    private mutating func divide(_ limit: Double, among indices: [Int]) {
        var remainingRate = limit
        var count = Double(indices.count)
        for index in indices.sorted(by: { runs[$0].rate < runs[$1].rate }) {
            runs[index].rate = min(runs[index].rate, remainingRate / count)
            remainingRate -= runs[index].rate
            count -= 1
        }
    }

    /// Advances to the next time at which a running session ends, or the wait of a waiting session is over. Returns false after the last such time.
    private mutating func advance() -> Bool {
        let ends = runs.map(end)
        let startTimes = waiting.lazy.filter { !$0.isStuck }.map(\.wait.inSeconds).filter { [now] in $0 > now }
        let next = (ends + startTimes).min() ?? .infinity
        guard next < Self.horizon else { return false }
        var stillRunning: [Run] = []
        for (var run, end) in zip(runs, ends) {
            guard end <= next else {
                if let bytes = run.remainingBytes { run.remainingBytes = max(0, bytes - run.rate * (next - now)) }
                stillRunning.append(run)
                continue
            }
            times[run.session.key, default: Times()].end = .seconds(next)
            ended.insert(run.session.key)
        }
        runs = stillRunning
        now = next
        return true
    }

    private func end(_ run: Run) -> Double {
        guard let bytes = run.remainingBytes, bytes <= 0 || run.rate > 0 else { return .infinity }
        return bytes <= 0 ? now : now + bytes / run.rate
    }

    /// The limit of the forecast, in seconds: a hundred years. No rate stays constant for that long, so later times are unknown.
    private static let horizon = 100 * 365.25 * 24 * 3_600
}
