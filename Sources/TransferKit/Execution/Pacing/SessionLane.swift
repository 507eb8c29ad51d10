/// A session that asked recently and so takes part in the division of the limits. All values in bytes and seconds.
struct SessionLane: Sendable {
    /// The number of bytes worth waking a transport for, within the shortest and the longest time.
    private static let worthwhile = 16_384.0
    private static let shortestWait = 0.01
    private static let turns = 0.005...0.05
    /// The time in which each waiting file of a session has its turn, unless there are very many.
    private static let round = 0.2
    private static let longestWait = 0.5
    /// The part of its share, in seconds, that is kept for a session that does not take it.
    private static let reserve = 0.1
    /// How long a session takes part after the time at which it was last expected.
    private static let patience = 0.25

    let session: SessionKey
    let account: AccountKey
    /// The applicable limits, as indices of buckets.
    let path: [Int]
    /// The bytes given to the session and not yet taken. Counted in all buckets of the path.
    var promised = 0.0
    /// The session's fair share of all limits if every session wants as much as possible: bytes per second.
    var share = 0.0
    private(set) var expiry = 0.0
    /// The times at which waiting files return, ascending.
    private var line: [Double] = []

    // For one division only.
    var want = 0.0
    var given = 0.0
    var isTaking = false

    init(session: SessionKey, account: AccountKey, path: [Int]) {
        self.session = session
        self.account = account
        self.path = path
    }

    /// The maximum reserve of the session.
    var target: Double { max(1, share * Self.reserve) }

    /// Records that a file of the session asks.
    mutating func arrive(at now: Double) {
        // Some tolerance, because the return time was rounded to a duration.
        line.removeAll { $0 <= now + 1e-6 }
        expiry = (line.last ?? now) + Self.patience
    }

    /// The minimum that is given to a file that wants `limit`.
    ///
    /// Half of a turn: a file that came late took some of the next one's turn, which is still served from the rest.
    func minimum(of limit: Int) -> Double {
        min(Double(limit), max(1, share * turn / 2))
    }

    /// Lets a file wait, and returns for how long.
    ///
    /// The files of a session take turns. They are not distinguishable, so each waiting file gets the next turn after those already given,
    /// and no file finds at its turn that another waiting file was always a little faster.
    mutating func wait(for limit: Int, having available: Double, at now: Double) -> Double {
        let turn = turn
        let missing = min(Double(limit), max(1, share * turn)) - available
        let filled = now + max(Self.shortestWait, missing / share)
        let due = max(filled, line.last.map { $0 + turn } ?? 0)
        // A file that must return before its turn, so that it notices a raised limit soon, gets no turn.
        guard due <= now + Self.longestWait else {
            expiry = now + Self.longestWait + Self.patience
            return Self.longestWait
        }
        line.append(due)
        expiry = due + Self.patience
        return due - now
    }

    private var turn: Double {
        let worthwhile = max(Self.shortestWait, Self.worthwhile / share)
        return max(Self.turns.lowerBound, min(Self.turns.upperBound, worthwhile, Self.round / Double(line.count + 1)))
    }
}
