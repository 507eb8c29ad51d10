/// The pacing state of a session that recently requested an allowance. The files of the session take turns: a *turn* is the time in which
/// the session's share goes to one waiting file. All values are in bytes and seconds.
struct PacedSession: Sendable {
    /// The number of bytes that justify waking a transport. A turn lasts long enough for that number of bytes, within `turnLengths`, unless
    /// many files wait.
    private static let worthwhileBytes = 16_384.0
    private static let shortestWait = 0.01
    /// The shortest and the longest turn.
    private static let turnLengths = 0.005...0.05
    /// The time in which every waiting file of a session gets one turn, unless so many files wait that the shortest turns take longer.
    private static let round = 0.2
    private static let longestWait = 0.5
    /// The time in which a session's share fills the session's reserve of promised bytes, in seconds.
    private static let reserve = 0.1
    /// The time in seconds by which the session's next request may be late before the pacing state expires.
    private static let lateTolerance = 0.25

    let session: SessionKey
    let account: AccountKey
    /// The limits that apply to the session, as indices of their buckets.
    let bucketIndices: [Int]
    /// The bytes promised to the session and not yet taken. Included in ``RateBucket/promised`` of each bucket in ``bucketIndices``.
    var promised = 0.0
    /// The session's fair share of all limits if every session wants as much as possible, in bytes per second.
    var share = 0.0
    private(set) var expiry = 0.0
    /// The times at which waiting files will repeat their requests, ascending.
    private var waitingUntil: [Double] = []

    // MARK: Used during one division only

    /// The number of bytes that the session still wants.
    var want = 0.0
    /// The number of bytes that the session has received.
    var granted = 0.0
    /// Whether the session takes part in the current round.
    var isTaking = false

    init(session: SessionKey, account: AccountKey, bucketIndices: [Int]) {
        self.session = session
        self.account = account
        self.bucketIndices = bucketIndices
    }

    /// The maximum reserve of the session: the maximum number of promised bytes.
    var target: Double { max(1, share * Self.reserve) }

    /// Records a request by a file of the session.
    mutating func arrive(at now: Double) {
        // The tolerance is needed because the time of the repeated request was rounded to a duration.
        waitingUntil.removeAll { $0 <= now + 1e-6 }
        expiry = (waitingUntil.last ?? now) + Self.lateTolerance
    }

    /// The minimum number of bytes that a file gets if it requests `limit` bytes.
    ///
    /// The minimum is half the bytes of a turn: if a late file has used some of the next file's turn, the next file still gets the rest.
    func minimum(of limit: Int) -> Double {
        min(Double(limit), max(1, share * turn / 2))
    }

    /// Adds a waiting file. Returns the time in seconds after which the file must repeat its request: at its turn, or after `longestWait` if it
    /// gets no turn.
    ///
    /// The files of a session take turns; otherwise, a slightly faster file could always take the bytes first. This type can't distinguish
    /// files, so each waiting file gets the next turn after the turns of the other waiting files.
    mutating func wait(for limit: Int, having available: Double, at now: Double) -> Double {
        let turn = turn
        let missing = min(Double(limit), max(1, share * turn)) - available
        let filled = now + max(Self.shortestWait, missing / share)
        let due = max(filled, waitingUntil.last.map { $0 + turn } ?? 0)
        // A file repeats its request after at most `longestWait`, so that the file soon notices a raised limit. If the file's turn would be
        // later, the file gets no turn this time.
        guard due <= now + Self.longestWait else {
            expiry = now + Self.longestWait + Self.lateTolerance
            return Self.longestWait
        }
        waitingUntil.append(due)
        expiry = due + Self.lateTolerance
        return due - now
    }

    private var turn: Double {
        let worthwhileTime = max(Self.shortestWait, Self.worthwhileBytes / share)
        let equalTime = Self.round / Double(waitingUntil.count + 1)
        return max(Self.turnLengths.lowerBound, min(Self.turnLengths.upperBound, worthwhileTime, equalTime))
    }
}
