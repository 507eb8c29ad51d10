/// When the sessions of a queue will start and end, if nothing changes but what time alone brings. Pure; all times are from now on.
///
/// Plays the queue forward, from one start or end to the next:
///
/// - What starts is the first session in the order given whose wait is over, whose other sessions have ended, and for which the queue and its
///   account have a free slot. In a strict queue nothing passes a session that can't start.
/// - Each session moves its bytes at the rate given for it, at most its own limit. Where sessions that run together want more than a limit of
///   their account or of the queue, they get equal parts of it, and what one can't use goes to the others.
/// - Nothing fails, each session that ends completes, and paused sessions keep their slots.
/// - A session whose bytes or rate are not known has no end: its slot stays taken, and what comes after it does not start.
package struct Forecast: Sendable {
    /// A session that runs or waits.
    package struct Session: Sendable, Equatable {
        package var key: SessionKey
        package var account: AccountKey
        /// What is left of it; nil if that is not known.
        package var bytes: Int64?
        /// Bytes per second, without regard to limits; nil if not known.
        package var rate: Double?
        /// Its own limit, in bytes per second.
        package var limit: Double?
        /// How long it waits at least.
        package var wait = Duration.zero
        /// Sessions that have to end first.
        package var predecessors: [SessionKey] = []
        /// Whether something that is not known has to happen first.
        package var isStuck = false
        /// Whether, in a strict queue, it may pass others.
        package var passes = false

        package init(key: SessionKey, account: AccountKey, bytes: Int64? = nil, rate: Double? = nil, limit: Double? = nil) {
            self.key = key
            self.account = account
            self.bytes = bytes
            self.rate = rate
            self.limit = limit
        }
    }

    /// Limits of the queue or of an account.
    package struct Limits: Sendable, Equatable {
        /// How many sessions may run; nil for any number.
        package var sessions: Int?
        /// Bytes per second; nil for no limit.
        package var rate: Double?
        /// Slots that paused sessions keep.
        package var paused = 0

        package init(sessions: Int? = nil, rate: Double? = nil, paused: Int = 0) {
            self.sessions = sessions
            self.rate = rate
            self.paused = paused
        }
    }

    /// When a session starts and ends; nil for what is not known.
    package struct Times: Sendable, Equatable {
        package var start: Duration?
        package var end: Duration?

        package init(start: Duration? = nil, end: Duration? = nil) {
            self.start = start
            self.end = end
        }
    }

    private struct Run {
        var session: Session
        /// Bytes that are left.
        var rest: Double?
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

    /// - Parameters:
    ///   - running: The sessions that run.
    ///   - waiting: Those that wait, in the order in which they go.
    package init(queue: Limits, accounts: [AccountKey: Limits] = [:], isStrict: Bool = false, running: [Session], waiting: [Session]) {
        self.queue = queue
        self.accounts = accounts
        self.isStrict = isStrict
        self.waiting = waiting
        runs = running.map { Run(session: $0, rest: $0.bytes.map(Double.init)) }
        play()
    }

    private mutating func play() {
        repeat {
            start()
            share()
        } while advance()
    }

    private mutating func start() {
        var left: [Session] = []
        var mayPass = true
        for session in waiting {
            guard mayPass || session.passes, isReady(session), hasSlot(session.account) else {
                left.append(session)
                if isStrict, !session.passes { mayPass = false }
                continue
            }
            times[session.key] = Times(start: .seconds(now))
            runs.append(Run(session: session, rest: session.bytes.map(Double.init)))
        }
        waiting = left
    }

    private func isReady(_ session: Session) -> Bool {
        !session.isStuck && session.wait.inSeconds <= now && session.predecessors.allSatisfy { ended.contains($0) }
    }

    private func hasSlot(_ account: AccountKey) -> Bool {
        if let limit = queue.sessions, runs.count + queue.paused >= limit { return false }
        guard let limits = accounts[account], let limit = limits.sessions else { return true }
        return runs.count { $0.session.account == account } + limits.paused < limit
    }

    /// Gives each run its rate until something starts or ends.
    private mutating func share() {
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
        var rest = limit
        var count = Double(indices.count)
        for index in indices.sorted(by: { runs[$0].rate < runs[$1].rate }) {
            runs[index].rate = min(runs[index].rate, rest / count)
            rest -= runs[index].rate
            count -= 1
        }
    }

    /// Goes on to the next moment at which something ends or becomes ready; false if there is none.
    private mutating func advance() -> Bool {
        let ends = runs.map(end)
        let readies = waiting.lazy.filter { !$0.isStuck }.map(\.wait.inSeconds).filter { [now] in $0 > now }
        let next = (ends + readies).min() ?? .infinity
        guard next < Self.horizon else { return false }
        var left: [Run] = []
        for (var run, end) in zip(runs, ends) {
            guard end <= next else {
                if let rest = run.rest { run.rest = max(0, rest - run.rate * (next - now)) }
                left.append(run)
                continue
            }
            times[run.session.key, default: Times()].end = .seconds(next)
            ended.insert(run.session.key)
        }
        runs = left
        now = next
        return true
    }

    /// When a run ends if nothing changes before.
    private func end(_ run: Run) -> Double {
        guard let rest = run.rest, rest <= 0 || run.rate > 0 else { return .infinity }
        return rest <= 0 ? now : now + rest / run.rate
    }

    /// What is further away than a hundred years is not known, as no rate lasts so long.
    private static let horizon = 100 * 365.25 * 24 * 3_600
}
