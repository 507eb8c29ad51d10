import TransferCore

/// The active limits and the sessions that compete for them. ``Pacer`` protects this value with a lock.
///
/// Each limit is a token bucket. Each session that recently requested an allowance has a lane (``SessionLane``) with a small reserve of
/// promised bytes. New bytes in the buckets are divided equally among the lanes until their reserves are full. A file takes bytes from its
/// session's reserve first, and then unpromised bytes. A session with frequent requests therefore can't take the bytes of a session that
/// sleeps until its next request.
struct RateLimits: Sendable {
    enum Scope: Hashable {
        case queue
        case account(AccountKey)
        case session(SessionKey)
    }

    /// The time in seconds after an update of the buckets during which a lane uses its reserve without another update.
    private static let freshness = 0.005
    /// If less than this fraction of a byte is missing, the byte counts as complete, because sums of fractions are not exact.
    private static let tolerance = 1e-6

    var buckets: [RateBucket] = []
    var lanes: [SessionLane] = []
    private var scopes: [Scope] = []
    private var queue: Int?
    private var accounts: [AccountKey: Int] = [:]
    private var sessions: [SessionKey: Int] = [:]
    /// The time at which new bytes were last divided among the lanes, in seconds of uptime.
    private var dividedAt = 0.0
    private var areSharesKnown = false

    /// Returns whether any limit applies to a session.
    func apply(to session: SessionKey, of account: AccountKey) -> Bool {
        !scopes.isEmpty && (queue != nil || accounts[account] != nil || sessions[session] != nil)
    }

    mutating func set(_ rate: Double?, for scope: Scope, at now: Double) {
        let known = self[scope]
        guard rate != known.map({ buckets[$0].rate }) else { return }
        // Lanes are short-lived: the next requests create them again, with new paths and shares.
        while !lanes.isEmpty { removeLane(at: lanes.count - 1) }
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

    mutating func dismiss(_ session: SessionKey) {
        for index in lanes.indices.reversed() where lanes[index].session == session { removeLane(at: index) }
    }

    mutating func allowance(upTo limit: Int, session: SessionKey, account: AccountKey, at time: Double) -> Allowance {
        // The time was read outside the lock, so another thread may already have used a later time.
        let now = max(time, dividedAt)
        if now < dividedAt + Self.freshness, let index = lane(of: session, account), lanes[index].promised >= Double(limit) {
            lanes[index].arrive(at: now)
            lanes[index].promised -= Double(limit)
            return Allowance(bytes: limit)
        }
        removeLanes(expiredAt: now)
        guard let index = lane(of: session, account) ?? addLane(of: session, account) else { return Allowance(bytes: limit) }
        lanes[index].arrive(at: now)
        divideFreeBytes(at: now)
        let free = lanes[index].path.reduce(Double.infinity) { min($0, buckets[$1].free) }
        let available = lanes[index].promised + free + Self.tolerance
        guard available >= lanes[index].minimum(of: limit) else {
            return Allowance(bytes: 0, retryAfter: .seconds(lanes[index].wait(for: limit, having: available, at: now)))
        }
        let bytes = min(Double(limit), available.rounded(.down))
        let fromFree = max(0, bytes - lanes[index].promised)
        for bucket in lanes[index].path { buckets[bucket].free = max(0, buckets[bucket].free - fromFree) }
        lanes[index].promised = max(0, lanes[index].promised - bytes)
        return Allowance(bytes: Int(bytes))
    }

    /// Refills the buckets, and divides their free bytes among the lanes until the lanes' reserves are full.
    private mutating func divideFreeBytes(at now: Double) {
        if !areSharesKnown {
            areSharesKnown = true
            divide(wants: { _ in .infinity }, pools: { $0.rate })
            for lane in lanes.indices { lanes[lane].share = lanes[lane].given }
        }
        countPromises()
        for lane in lanes.indices {
            for bucket in lanes[lane].path { buckets[bucket].refill(at: now) }
        }
        dividedAt = now
        divide(wants: { max(0, $0.target - $0.promised) }, pools: { $0.free })
        for lane in lanes.indices {
            lanes[lane].promised += lanes[lane].given
            for bucket in lanes[lane].path { buckets[bucket].free = buckets[bucket].pool }
        }
    }

    private mutating func countPromises() {
        for lane in lanes.indices {
            for bucket in lanes[lane].path {
                buckets[bucket].promised = 0
                buckets[bucket].lanes = 0
            }
        }
        for lane in lanes.indices {
            for bucket in lanes[lane].path {
                buckets[bucket].promised += lanes[lane].promised
                buckets[bucket].lanes += 1
            }
        }
    }

    private func lane(of session: SessionKey, _ account: AccountKey) -> Int? {
        lanes.firstIndex { $0.session == session && $0.account == account }
    }

    private mutating func addLane(of session: SessionKey, _ account: AccountKey) -> Int? {
        let path = [queue, accounts[account], sessions[session]].compactMap(\.self)
        // Another thread may have removed the last limit since the caller checked ``apply(to:of:)``.
        guard !path.isEmpty else { return nil }
        lanes.append(SessionLane(session: session, account: account, path: path))
        areSharesKnown = false
        return lanes.count - 1
    }

    private mutating func removeLanes(expiredAt now: Double) {
        for index in lanes.indices.reversed() where lanes[index].expiry < now { removeLane(at: index) }
    }

    /// Removes a lane and frees the bytes promised to it.
    private mutating func removeLane(at index: Int) {
        let lane = lanes.remove(at: index)
        for bucket in lane.path { buckets[bucket].free += lane.promised }
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
