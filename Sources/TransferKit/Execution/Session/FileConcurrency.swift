import TransferCore

/// Decides how many small files of a session may make requests concurrently (the *limit*), from the times at which files begin and end.
///
/// With few files in flight, a session spends most of its time waiting for responses. With too many, requests only wait in queues at the server.
/// The rule looks for the smallest limit that transfers almost as many files per second as any other limit:
///
/// - **Growth.** At first, each completed file adds one to the limit, so the limit doubles in each round. After two successive rounds in which the
///   rate grew by at most a fifth, the limit returns to the last limit that raised the rate, plus a quarter.
/// - **Trials.** From then on, trials change the limit. The first trial comes after 8 rounds; each useless trial doubles this interval, up
///   to 64 rounds. A trial raises the limit by half, and keeps the higher limit if the rate grows at least a third as much (by a sixth).
///   Otherwise the trial uses a quarter less than the previous limit, and keeps this number if the rate stays at 98 % or more. If the rate
///   falls by more than 30 % in two successive rounds between trials, the rule tries the lower number immediately.
/// - **Refusals.** If an overloaded server refuses at least four files, and at least a tenth of a round's files, the limit returns to the
///   highest accepted number. Then the limit rises again in steps, each halfway to the refused number. The limit stays below the refused
///   number until 30 s after the last round with so many refusals.
/// - **Failures.** If a quarter of a round's files fail, for example because connections break, the rule halves the limit.
///
/// During the growth, a round lasts at least 50 ms. It ends when a file that began in the round ends, and the number of ended files has reached the
/// limit at the start of the round. Later rounds last longer, so that a random dip of the rate does not count. A rate counts only if the session had
/// enough files in the round to reach the limit.
package struct FileConcurrency: Sendable {
    package enum Outcome: Sendable {
        case completed
        /// The server refused the file because the server is overloaded.
        case refused
        /// The attempt failed temporarily without a response.
        case failed
    }

    private enum Phase { case growth, steady, trialAbove, trialBelow }

    private static let firstTrialInterval = 8
    private static let longestTrialInterval = 64
    private static let ceilingDuration = Duration.seconds(30)

    /// The number of files that may make requests concurrently. At least 2 (unless the initial number is 1), so that a live stream does not hold
    /// the only turn.
    package private(set) var limit: Int
    private let minimum: Int
    private let maximum: Int
    private var phase = Phase.growth

    /// The limit to which a useless trial returns.
    private var base: Int
    /// The average number of files per second at the base limit; 0 if unknown.
    private var baseRate = 0.0
    /// The number of successive rounds in which the rate grew too little (in the phase `growth`) or fell too far (in the phase `steady`).
    private var badRounds = 0
    private var trialInterval = firstTrialInterval
    private var roundsToTrial = firstTrialInterval

    private var round: Round?
    /// The duration of the shortest round of the growth, at least 50 ms; nil before the end of the first round.
    private var shortestRound: Duration?
    /// Whether the current round only waits for requests that began under an earlier limit.
    private var awaitsEarlierRequests = false

    /// The highest limit at which a round ended without too many refusals; see ``Round/isRefused``.
    private var accepted = 0
    /// The limit at which the server last refused too many files; nil if this was more than 30 s ago, or never.
    private var ceiling: Int?
    private var ceilingEnds = Duration.zero
    /// The uptime at which the limit was last reduced. Files that began earlier belong to the earlier limit.
    private var reducedAt = Duration.zero - .seconds(1)

    private struct Round {
        let began: Duration
        let limit: Int
        var completed = 0
        var failed = 0
        var refused = 0
        /// The number of completed or failed files that ended while the session had another small file to start.
        var limited = 0

        var ended: Int { completed + failed }
        var reachesLimit: Bool { limited * 4 >= ended * 3 }
        var isRefused: Bool { refused >= 4 && refused * 10 >= ended + refused }

        func rate(over elapsed: Duration) -> Double { Double(completed) / max(elapsed.inSeconds, 1e-6) }
    }

    /// - Parameters:
    ///   - initial: The first limit.
    ///   - maximum: The highest limit.
    package init(initial: Int, maximum: Int) {
        minimum = min(max(initial, 1), 2)
        self.maximum = max(maximum, minimum)
        limit = min(max(initial, minimum), self.maximum)
        base = limit
    }

    /// Records the end of a file's attempt.
    ///
    /// - Parameters:
    ///   - began: The uptime at which the file could begin its requests.
    ///   - reachesLimit: Whether the session has another small file to start.
    package mutating func fileEnded(_ outcome: Outcome, began: Duration, now: Duration, reachesLimit: Bool) {
        if now >= ceilingEnds { ceiling = nil }
        // One event at the server can end many files. Files that began before the limit was reduced do not reduce the limit again.
        guard outcome == .completed || began > reducedAt else { return }
        var current = round ?? Round(began: began, limit: limit)
        if reachesLimit, outcome != .refused { current.limited += 1 }
        switch outcome {
        case .completed:
            current.completed += 1
            if phase == .growth, reachesLimit, limit < highest { limit += 1 }
        case .failed: current.failed += 1
        case .refused: current.refused += 1
        }
        round = current
        guard !current.isRefused else { return refused(now: now) }
        let elapsed = now - current.began
        if phase == .growth, current.reachesLimit, let shortestRound, elapsed > max(shortestRound * 3, .milliseconds(200)) {
            // The server became much slower.
            badRounds = 2
        } else if began < current.began || current.ended < current.limit || elapsed < .milliseconds(50) || !isDecided(current, elapsed) {
            return
        }
        end(current, now: now)
    }

    private var highest: Int { max(minimum, min(maximum, (ceiling ?? .max) - 1)) }

    /// Whether a round has enough files for a decision. A trial of a lower limit needs the most files, so that a random dip of the rate does not
    /// look like a result.
    private func isDecided(_ round: Round, _ elapsed: Duration) -> Bool {
        switch phase {
        case _ where awaitsEarlierRequests, .growth: true
        case .steady, .trialAbove: round.ended >= 2 * round.limit && (elapsed > .seconds(1) || round.ended >= 100)
        case .trialBelow where round.ended >= 24 && round.rate(over: elapsed) < baseRate * 0.85: true
        case .trialBelow: round.ended >= 4 * round.limit && (elapsed > .seconds(2) || round.ended >= 400)
        }
    }

    private mutating func end(_ ended: Round, now: Duration) {
        let elapsed = now - ended.began
        let awaitedEarlierRequests = awaitsEarlierRequests
        if phase == .growth { shortestRound = min(shortestRound ?? elapsed, max(elapsed, .milliseconds(50))) }
        awaitsEarlierRequests = false
        if ended.failed * 4 >= max(ended.ended, 4) {
            reduce(to: limit / 2, now: now)
        } else if !awaitedEarlierRequests, ended.reachesLimit {
            accepted = max(accepted, min(limit, ended.limit))
            decide(ended.rate(over: elapsed), ended.limit)
        }
        round = Round(began: now, limit: limit)
    }

    private mutating func decide(_ rate: Double, _ size: Int) {
        switch phase {
        case .growth: grew(rate, size)
        case .steady: stayed(rate)
        case .trialAbove: triedAbove(rate)
        case .trialBelow: triedBelow(rate)
        }
    }

    private mutating func grew(_ rate: Double, _ size: Int) {
        if rate > baseRate * 1.2 {
            badRounds = 0
            baseRate = rate
            base = size
            if limit >= highest { stay(at: limit) }
        } else {
            badRounds += 1
            baseRate = max(baseRate, rate)
            if badRounds >= 2 { stay(at: base + base / 4) }
        }
    }

    private mutating func stay(at newLimit: Int) {
        limit = min(max(newLimit, minimum), highest)
        phase = .steady
        base = limit
        baseRate = 0
        badRounds = 0
        awaitsEarlierRequests = true
        roundsToTrial = ceiling != nil && limit < highest ? 1 : trialInterval
    }

    private mutating func stayed(_ rate: Double) {
        if baseRate == 0 { baseRate = rate }
        badRounds = rate < baseRate * 0.7 ? badRounds + 1 : 0
        baseRate += (rate - baseRate) / 4
        roundsToTrial -= 1
        if badRounds >= 2 {
            badRounds = 0
            tryBelow()
        } else if roundsToTrial <= 0 {
            if limit < highest { tryAbove() } else { tryBelow() }
        }
    }

    private mutating func tryAbove() {
        phase = .trialAbove
        limit = min(highest, max(base + 1, ceiling == nil ? base + base / 2 : (base + highest + 1) / 2))
        awaitsEarlierRequests = true
    }

    private mutating func tryBelow() {
        guard base > minimum else { return stay(at: base) }
        phase = .trialBelow
        limit = max(minimum, min(base - 1, base * 3 / 4))
        awaitsEarlierRequests = true
    }

    private mutating func triedAbove(_ rate: Double) {
        let growth = Double(limit - base) / Double(base)
        guard rate > baseRate * (1 + growth / 3) else { return tryBelow() }
        base = limit
        baseRate = rate
        trialInterval = Self.firstTrialInterval
        if limit < highest { tryAbove() } else { stay(at: limit) }
    }

    private mutating func triedBelow(_ rate: Double) {
        if rate >= baseRate * 1.05, limit > minimum {
            base = limit
            baseRate = rate
            tryBelow()
        } else if rate >= baseRate * 0.98 {
            trialInterval = Self.firstTrialInterval
            stay(at: limit)
        } else {
            trialInterval = min(trialInterval * 2, Self.longestTrialInterval)
            stay(at: base)
        }
    }

    private mutating func refused(now: Duration) {
        // If even the accepted number is refused, the server's capacity has changed.
        accepted = accepted < limit ? accepted : limit * 3 / 4
        ceiling = max(limit, minimum + 1)
        ceilingEnds = now + Self.ceilingDuration
        reduce(to: accepted > 0 ? accepted : limit / 2, now: now)
        round = Round(began: now, limit: limit)
    }

    private mutating func reduce(to newLimit: Int, now: Duration) {
        reducedAt = now
        trialInterval = Self.firstTrialInterval
        stay(at: newLimit)
    }
}

extension FileConcurrency.Outcome {
    /// The outcome of an attempt that failed with an error; nil if the error is unrelated to the load.
    package init?(_ error: TransferError) {
        switch error.failureClass {
        case .transient where error.code == .serverUnavailable || error.retryAfter != nil: self = .refused
        case .transient where error.code == .connectionLost, .unreachable: self = .failed
        default: return nil
        }
    }
}
