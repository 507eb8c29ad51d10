import Foundation
import TransferCore

extension Scheduler {
    /// Whether the account, the network and this machine permit a session to start, and the reason if they do not. Ignores slots and the
    /// session's own waits, such as its backoff.
    enum Ability: Equatable {
        case able(Endpoint)
        case blocked(TransferError)
        case transportMissing(TransportID)
        /// All endpoints with a registered transport are unavailable. The given uptime is the first time at which one of them becomes
        /// available; nil if the account has no endpoints or was removed.
        case unavailable(until: Duration?)
        case networkConstrained
        case diskBelowFloor(free: Int64)
        /// Too many abandoned runs have not ended, so no other run may begin.
        case runsNotEnded(Int)

        var isAble: Bool {
            if case .able = self { true } else { false }
        }
    }

    func ability(of entry: Entry, at now: DualInstant) -> Ability { ability(of: entry.line, at: now) }

    func ability(of line: SessionIndex.LineKey, at now: DualInstant) -> Ability {
        guard let account = accounts[line.account] else { return .unavailable(until: nil) }
        if let block = account.block { return .blocked(block.error) }
        var first: TransportID?
        var until: Duration?
        var isRegistered = false
        for endpoint in account.account.endpoints {
            first = first ?? endpoint.transport
            guard settings.transports.contains(endpoint.transport) else { continue }
            isRegistered = true
            switch flags.health.availability(of: endpoint, run: nil, at: now.uptime) {
            case .available: return checkNetworkAndResources(endpoint, line)
            case .unavailable(let time): until = min(until ?? time, time)
            }
        }
        if !isRegistered, let first { return .transportMissing(first) }
        return .unavailable(until: until)
    }

    /// The number of abandoned runs at which no other run begins, because each abandoned run still occupies threads and memory.
    static let maximumAbandoned = 16

    private func checkNetworkAndResources(_ endpoint: Endpoint, _ line: SessionIndex.LineKey) -> Ability {
        if !flags.network.permits(needsCheapNetwork: line.needsCheapNetwork) { return .networkConstrained }
        if let free = flags.scarceSpace { return .diskBelowFloor(free: free) }
        if flags.abandoned.count >= Self.maximumAbandoned { return .runsNotEnded(flags.abandoned.count) }
        return .able(endpoint)
    }

    func unavailableEndpoints(of account: Account, at now: DualInstant) -> [UnavailableEndpoint] {
        account.endpoints.compactMap { endpoint in
            guard case .unavailable(let until) = flags.health.availability(of: endpoint, run: nil, at: now.uptime) else { return nil }
            return UnavailableEndpoint(
                location: endpoint.location, nextAttempt: now.date + (until - now.uptime),
                error: flags.health.failure(at: [endpoint], at: now.uptime))
        }
    }

    /// The endpoints of a session's account, and which of them a run may use now; nil if the session was removed.
    package func endpoints(for key: SessionKey, run: UInt64, at now: DualInstant) -> EndpointAvailability? {
        guard let entry = sessionIndex[key], let account = accounts[entry.account]?.account else { return nil }
        let registered = account.endpoints.filter { settings.transports.contains($0.transport) }
        return EndpointAvailability(
            account: account, registered: registered,
            available: registered.filter { flags.health.availability(of: $0, run: run, at: now.uptime) == .available },
            busyUntil: flags.health.busyUntil(registered, at: now.uptime),
            needingProbe: Set(registered.filter { flags.health.mustBeProbed($0, at: now.uptime) }),
            failure: flags.health.failure(at: registered, at: now.uptime))
    }

    // MARK: Endpoint health

    /// Changes the health of endpoints, and recalls only the lines (``LineHeads``) of accounts that use them. Recalling all lines after
    /// each failure would be slow if many endpoints failed at the same time.
    mutating func changeHealth(of endpoints: some Sequence<EndpointHealth.Key>, _ change: (inout EndpointHealth) -> Void) {
        mutateFlags { change(&$0.health) }
        for endpoint in endpoints {
            for account in accountIndex.users(of: endpoint) { sessionIndex.recallLines(of: account) }
        }
    }

    mutating func recordSuccess(of endpoint: Endpoint) {
        guard flags.health.hasFailures(at: endpoint) else { return }
        let hadOpenBreaker = flags.health.hasOpenBreaker(endpoint)
        changeHealth(of: [EndpointHealth.Key(endpoint)]) { $0.recordSuccess(endpoint) }
        if hadOpenBreaker { endWaitsForProbes(of: endpoint) }
    }

    /// Shortens the delays of sessions that wait for another session's probe of this endpoint, because the endpoint works again. Changes at
    /// most ``maximumPerTransaction`` sessions; the remaining sessions keep their delays.
    private mutating func endWaitsForProbes(of endpoint: Endpoint) {
        let users = accountIndex.users(of: EndpointHealth.Key(endpoint)).filter {
            accounts[$0]?.account.endpoints.contains(endpoint) == true
        }
        let waiting = users.flatMap { sessionIndex.backoffs[$0] ?? [] }.filter { key in
            let details = sessionIndex.details(key)
            return details.ownRetryAt != nil && details.ownRetryAt != details.retryAt
        }
        for key in waiting.sorted().prefix(Self.maximumPerTransaction) {
            mutate(key) { _, details in details.retryAt = details.ownRetryAt }
        }
    }

    mutating func endProbes(of run: UInt64) {
        let endpoints = flags.health.endpointsProbed(by: run)
        if !endpoints.isEmpty { changeHealth(of: endpoints) { $0.end(run: run) } }
    }

    mutating func retryEndpoints(of account: AccountKey, at now: DualInstant) {
        guard let endpoints = accounts[account]?.account.endpoints else { return }
        // A delay that a host requested also applies to other accounts with endpoints on that host.
        let isHostBusy = !flags.health.busyUntil(endpoints, at: now.uptime).isEmpty
        changeHealth(of: endpoints.map(EndpointHealth.Key.init)) { $0.retry(endpoints, at: now.uptime) }
        if isHostBusy { sessionIndex.recallAllLines() }
    }

    /// Whether any run has not ended, including runs of removed sessions. Ignores abandoned runs.
    var hasLiveRuns: Bool { !sessionIndex.live.isEmpty || !flags.removedRuns.isEmpty }

    /// The number of the account's slots in use, including slots that runs of removed sessions still use.
    func slotsInUse(of account: AccountKey) -> Int {
        (sessionIndex.accountSlots[account]?.total ?? 0) + flags.removedRuns.values.count { $0 == account }
    }

    /// Whether a session that has a slot may begin a run now. False while the number of unfinished runs is at or above the limit of the queue
    /// or of the account. This can happen after a limit was lowered, or while the run of a session that displaced this session is ending.
    func mayRunBesideOthers(_ account: AccountKey) -> Bool {
        guard sessionIndex.live.count + flags.removedRuns.count < maxConcurrentSessions else { return false }
        guard let limit = accounts[account]?.account.maxConcurrentSessions else { return true }
        return sessionIndex.live.count { sessionIndex[$0]?.account == account } + flags.removedRuns.values.count { $0 == account } < limit
    }

    func hasSlot(_ account: AccountKey) -> Bool {
        accounts[account]?.account.maxConcurrentSessions.map { slotsInUse(of: account) < $0 } ?? true
    }
}
