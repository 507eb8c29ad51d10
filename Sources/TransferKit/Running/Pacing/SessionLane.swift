/// A session that asked lately and so takes part in the division of the limits. All in bytes and seconds.
struct SessionLane: Sendable {
    /// How much is worth waking a transport for, within the shortest and the longest time.
    private static let worthwhile = 16_384.0
    private static let shortestWait = 0.01
    private static let turns = 0.005...0.05
    /// In this time each waiting file of a session has its turn, unless there are very many.
    private static let round = 0.2
    private static let longestWait = 0.5
    /// How much of its share a session that does not come for it is kept.
    private static let reserve = 0.1
    /// How long a session takes part after it was last expected.
    private static let patience = 0.25

    let session: SessionKey
    let account: AccountKey
    /// The limits that apply, as indices of buckets.
    let path: [Int]
    /// What was dealt to the session and not yet taken. Counted in all buckets of the path.
    var promised = 0.0
    /// The session's fair part of all limits while everybody wants as much as possible: bytes per second.
    var share = 0.0
    private(set) var expiry = 0.0
    /// When the files that were sent away come back, ascending.
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

    /// How much the session may have in reserve.
    var target: Double { max(1, share * Self.reserve) }

    /// Notes that a file of the session is asking.
    mutating func arrive(at now: Double) {
        // Some tolerance, as the time to come back was rounded to a duration.
        line.removeAll { $0 <= now + 1e-6 }
        expiry = (line.last ?? now) + Self.patience
    }

    /// The least that is given to a file that wants `limit`.
    ///
    /// Half of a turn: a file that came late took some of the next one's turn, which is served from the rest all the same.
    func minimum(of limit: Int) -> Double {
        min(Double(limit), max(1, share * turn / 2))
    }

    /// Sends a file away and tells how long.
    ///
    /// The files of a session take turns. They can't be told apart, so each that is sent away gets the next turn after those already given,
    /// and no file finds at its turn that another, which waits like it, was always a little faster.
    mutating func wait(for limit: Int, having available: Double, at now: Double) -> Double {
        let turn = turn
        let missing = min(Double(limit), max(1, share * turn)) - available
        let filled = now + max(Self.shortestWait, missing / share)
        let due = max(filled, line.last.map { $0 + turn } ?? 0)
        // Who may have to come back before its turn, so that a raised limit is noticed soon, gets no place.
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
