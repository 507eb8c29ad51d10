import TransferCore

/// Applies the rate limits to one direction of a transfer. Used only on the thread of ``CurlLoop``.
struct TransferPacer {
    private let allowance: (@Sendable (Int) -> Allowance)?
    /// The number of allowed bytes that have not been transferred yet.
    private var credit = 0
    /// The time at which to consult the rate limits again, after they allowed no bytes.
    var resumesAt: ContinuousClock.Instant?

    init(_ allowance: (@Sendable (Int) -> Allowance)?) {
        self.allowance = allowance
    }

    /// Returns the number of bytes that can be transferred now, which can exceed `limit`. If no allowed bytes are left, first requests at
    /// most `limit` bytes from the rate limits.
    mutating func credit(upTo limit: Int) -> Int {
        guard allowance != nil else { return limit }
        if credit <= 0 { requestCredit(upTo: limit) }
        return credit
    }

    /// Consults the rate limits until `count` bytes are allowed, or until the rate limits allow no more bytes now.
    ///
    /// - Returns: Whether all `count` bytes are allowed.
    mutating func cover(_ count: Int) -> Bool {
        guard allowance != nil else { return true }
        while credit < count {
            if requestCredit(upTo: count - credit) == 0 { return false }
        }
        return true
    }

    mutating func use(_ count: Int) {
        guard allowance != nil else { return }
        credit -= count
    }

    /// Requests at most `limit` bytes from the rate limits.
    ///
    /// - Returns: The number of newly allowed bytes.
    @discardableResult
    private mutating func requestCredit(upTo limit: Int) -> Int {
        guard let granted = allowance?(limit) else { return 0 }
        let bytes = max(0, min(granted.bytes, limit))
        credit += bytes
        // With a wait of zero, the loop would consult the rate limits continuously.
        if bytes == 0 { resumesAt = .now + max(granted.retryAfter, .milliseconds(1)) }
        return bytes
    }
}
