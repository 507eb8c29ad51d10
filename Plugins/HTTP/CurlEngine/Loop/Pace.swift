import TransferCore

/// The allowance of the rate limits for one direction of a transfer. Confined to the loop's thread.
struct Pace {
    private let allowance: (@Sendable (Int) -> Allowance)?
    /// The number of allowed bytes that were not moved yet.
    private var credit = 0
    /// When to ask again, after nothing was allowed.
    var resumesAt: ContinuousClock.Instant?

    init(_ allowance: (@Sendable (Int) -> Allowance)?) {
        self.allowance = allowance
    }

    /// The number of bytes, at most `limit`, that can be moved now; asks the rate limits if none are left.
    mutating func credit(upTo limit: Int) -> Int {
        guard allowance != nil else { return limit }
        if credit <= 0 { ask(upTo: limit) }
        return credit
    }

    /// Asks until all of `count` bytes are allowed, or no more are for now.
    ///
    /// - Returns: Whether all are allowed.
    mutating func cover(_ count: Int) -> Bool {
        guard allowance != nil else { return true }
        while credit < count {
            if ask(upTo: count - credit) == 0 { return false }
        }
        return true
    }

    mutating func use(_ count: Int) {
        guard allowance != nil else { return }
        credit -= count
    }

    @discardableResult
    private mutating func ask(upTo limit: Int) -> Int {
        guard let answer = allowance?(limit) else { return 0 }
        let bytes = max(0, min(answer.bytes, limit))
        credit += bytes
        // A wait of zero would keep the thread busy asking.
        if bytes == 0 { resumesAt = .now + max(answer.retryAfter, .milliseconds(1)) }
        return bytes
    }
}
