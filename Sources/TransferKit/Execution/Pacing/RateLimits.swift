import TransferCore

/// The active limits and the sessions that compete for them. ``Pacer`` protects this value with a lock.
///
/// Each limit is a token bucket. Each session that recently requested an allowance is a paced session (``PacedSession``), with a small reserve
/// of promised bytes. New bytes in the buckets are divided equally among the paced sessions until their reserves are full. A file takes bytes
/// from its session's reserve first, and then unpromised bytes. A session with frequent requests therefore can't take the bytes of a session
/// that sleeps until its next request.
struct RateLimits: Sendable {
    enum Scope: Hashable {
        case queue
        case account(AccountKey)
        case session(SessionKey)
    }

    /// The time in seconds after an update of the buckets during which a session uses its reserve without another update.
    private static let freshness = 0.005
    /// If less than this fraction of a byte is missing, the byte counts as complete, because sums of fractions are not exact.
    private static let tolerance = 1e-6

    var buckets: [RateBucket] = []
    var pacedSessions: [PacedSession] = []
    private var scopes: [Scope] = []
    private var queue: Int?
    private var accounts: [AccountKey: Int] = [:]
    private var sessions: [SessionKey: Int] = [:]
    /// The time at which new bytes were last divided among the paced sessions, in seconds of uptime.
    private var dividedAt = 0.0
    private var areSharesKnown = false

    /// Returns whether any limit applies to a session.
    func apply(to session: SessionKey, of account: AccountKey) -> Bool {
        !scopes.isEmpty && (queue != nil || accounts[account] != nil || sessions[session] != nil)
    }

    mutating func set(_ rate: Double?, for scope: Scope, at now: Double) {
        let known = self[scope]
        guard rate != known.map({ buckets[$0].rate }) else { return }
        // Paced sessions are short-lived: the next requests create them again, with new bucket indices and shares.
        while !pacedSessions.isEmpty { removePacedSession(at: pacedSessions.count - 1) }
        if let known, let rate {
            buckets[known].change(to: rate, at: max(now, dividedAt))
        } else if let known {
            // The last bucket moves into the gap.
            self[scopes[scopes.count - 1]] = known
            self[scope] = nil
            buckets.swapAt(known, buckets.count - 1)
            buckets.removeLast()
            scopes.swapAt(known, scopes.count - 1)
            scopes.removeLast()
        } else if let rate {
            self[scope] = buckets.count
            buckets.append(RateBucket(rate: rate, at: max(now, dividedAt)))
            scopes.append(scope)
        }
    }

    mutating func removeSession(_ session: SessionKey) {
        for index in pacedSessions.indices.reversed() where pacedSessions[index].session == session { removePacedSession(at: index) }
    }

    mutating func allowance(upTo limit: Int, session: SessionKey, account: AccountKey, at time: Double) -> Allowance {
        // The time was read outside the lock, so another thread may already have used a later time.
        let now = max(time, dividedAt)
        if now < dividedAt + Self.freshness, let index = pacedIndex(of: session, account), pacedSessions[index].promised >= Double(limit) {
            pacedSessions[index].arrive(at: now)
            pacedSessions[index].promised -= Double(limit)
            return Allowance(bytes: limit)
        }
        removePacedSessions(expiredAt: now)
        guard let index = pacedIndex(of: session, account) ?? addPacedSession(of: session, account) else { return Allowance(bytes: limit) }
        pacedSessions[index].arrive(at: now)
        divideFreeBytes(at: now)
        let free = pacedSessions[index].bucketIndices.reduce(Double.infinity) { min($0, buckets[$1].free) }
        let available = pacedSessions[index].promised + free + Self.tolerance
        guard available >= pacedSessions[index].minimum(of: limit) else {
            return Allowance(bytes: 0, retryAfter: .seconds(pacedSessions[index].wait(for: limit, having: available, at: now)))
        }
        let bytes = min(Double(limit), available.rounded(.down))
        let fromFree = max(0, bytes - pacedSessions[index].promised)
        for bucket in pacedSessions[index].bucketIndices { buckets[bucket].free = max(0, buckets[bucket].free - fromFree) }
        pacedSessions[index].promised = max(0, pacedSessions[index].promised - bytes)
        return Allowance(bytes: Int(bytes))
    }

    /// Refills the buckets, and divides their free bytes among the paced sessions until the sessions' reserves are full.
    private mutating func divideFreeBytes(at now: Double) {
        if !areSharesKnown {
            areSharesKnown = true
            divide(wants: { _ in .infinity }, pools: { $0.rate })
            for paced in pacedSessions.indices { pacedSessions[paced].share = pacedSessions[paced].granted }
        }
        countPromises()
        for paced in pacedSessions.indices {
            for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].refill(at: now) }
        }
        dividedAt = now
        divide(wants: { max(0, $0.target - $0.promised) }, pools: { $0.free })
        for paced in pacedSessions.indices {
            pacedSessions[paced].promised += pacedSessions[paced].granted
            for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].free = buckets[bucket].pool }
        }
    }

    private mutating func countPromises() {
        for paced in pacedSessions.indices {
            for bucket in pacedSessions[paced].bucketIndices {
                buckets[bucket].promised = 0
                buckets[bucket].sessionCount = 0
            }
        }
        for paced in pacedSessions.indices {
            for bucket in pacedSessions[paced].bucketIndices {
                buckets[bucket].promised += pacedSessions[paced].promised
                buckets[bucket].sessionCount += 1
            }
        }
    }

    private func pacedIndex(of session: SessionKey, _ account: AccountKey) -> Int? {
        pacedSessions.firstIndex { $0.session == session && $0.account == account }
    }

    private mutating func addPacedSession(of session: SessionKey, _ account: AccountKey) -> Int? {
        let bucketIndices = [queue, accounts[account], sessions[session]].compactMap(\.self)
        // Another thread may have removed the last limit since the caller checked ``apply(to:of:)``.
        guard !bucketIndices.isEmpty else { return nil }
        pacedSessions.append(PacedSession(session: session, account: account, bucketIndices: bucketIndices))
        areSharesKnown = false
        return pacedSessions.count - 1
    }

    private mutating func removePacedSessions(expiredAt now: Double) {
        for index in pacedSessions.indices.reversed() where pacedSessions[index].expiry < now { removePacedSession(at: index) }
    }

    /// Removes a paced session and frees the bytes promised to it.
    private mutating func removePacedSession(at index: Int) {
        let paced = pacedSessions.remove(at: index)
        for bucket in paced.bucketIndices { buckets[bucket].free += paced.promised }
        areSharesKnown = false
    }

    private subscript(scope: Scope) -> Int? {
        get {
            switch scope {
            case .queue: queue
            case .account(let key): accounts[key]
            case .session(let key): sessions[key]
            }
        }
        set {
            switch scope {
            case .queue: queue = newValue
            case .account(let key): accounts[key] = newValue
            case .session(let key): sessions[key] = newValue
            }
        }
    }
}
