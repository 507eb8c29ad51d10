/// The environment of the queue: the network condition and the free disk space. Not stored.
extension Scheduler {
    /// The maximum time between two checks of the disk while its free space is below the floor (the minimum free space).
    private static let diskCheckInterval = Duration.seconds(30)

    // MARK: The network

    /// Sets the network condition, and interrupts runs that the network no longer permits. If the condition has changed and a network is
    /// available, also ends retry delays.
    mutating func setNetwork(_ condition: NetworkCondition, at now: DualInstant, _ transaction: inout Transaction) {
        // Endpoints that failed in the previous network may work in this network.
        if condition != flags.network, condition != .unavailable {
            mutateFlags { $0.health.retryAll(at: now.uptime) }
            for account in sessionIndex.backoffs.keys.sorted() { endBackoffs(of: account, &transaction) }
        }
        mutateFlags { $0.network = condition }
        sessionIndex.recallAllLines()
        for key in sessionIndex.live.sorted() { interruptUnlessPermitted(key, &transaction) }
    }

    /// Allows immediate probes of the endpoints whose last failure was an outage. Also ends the retry delays of each account whose failed
    /// endpoints are all such endpoints. The sessions of other accounts keep their delays, so that frequent route changes, for example when
    /// containers start and stop, don't use up a file's attempts. A server's request to back off stays in effect.
    mutating func noteNewRoute(at now: DualInstant, _ transaction: inout Transaction) {
        mutateFlags { $0.health.retryOutages(at: now.uptime) }
        for account in sessionIndex.backoffs.keys.sorted() where flags.health.hasOnlyOutages(at: accounts[account]?.account.endpoints ?? [])
        {
            endBackoffs(of: account, &transaction)
        }
        sessionIndex.recallAllLines()
    }

    mutating func setNeedsCheapNetwork(_ needsCheapNetwork: Bool, _ key: SessionKey, _ transaction: inout Transaction) {
        mutate(key) { entry, _ in
            if needsCheapNetwork { entry.conditions.insert(.needsCheapNetwork) } else { entry.conditions.remove(.needsCheapNetwork) }
        }
        interruptUnlessPermitted(key, &transaction)
    }

    private mutating func interruptUnlessPermitted(_ key: SessionKey, _ transaction: inout Transaction) {
        guard let entry = sessionIndex[key], entry.state == .running, !flags.network.permits(entry) else { return }
        requestStop(key, &transaction) { entry, _ in
            entry.state = .waiting
            entry.startPriority = .interrupted
        }
    }

    // MARK: The disk

    /// Records the free space, in bytes, on the disk of the storage folder.
    mutating func record(freeSpace: Int64, at now: DualInstant) {
        let isScarce = freeSpace < diskFloor
        guard isScarce || flags.scarceSpace != nil else { return }
        mutateFlags {
            $0.scarceSpace = isScarce ? freeSpace : nil
            $0.diskCheckAt = now.uptime + Self.diskCheckInterval
        }
        sessionIndex.recallAllLines()
    }

    /// If a check of the disk was due, sets the time of the next check. The writer has already made the due check: it reads the free space
    /// before it calls the scheduler.
    mutating func scheduleDiskCheck(at now: DualInstant) {
        guard flags.scarceSpace != nil, flags.diskCheckAt <= now.uptime else { return }
        mutateFlags { $0.diskCheckAt = now.uptime + Self.diskCheckInterval }
    }

    // MARK: Space for downloads

    /// How likely it is that this queue has released space for which ``wakeSessionsShortOfSpace(at:)`` has not scheduled checks yet.
    package enum ReleasedSpace: Comparable, Sendable {
        /// A file or a run ended, and may have released space that it used or reserved.
        case possibly
        /// A run was interrupted, or finished with a failed file or session; an abandoned run or the run of a removed session ended; or a
        /// pending removal (``PendingDiscard``) freed space.
        case probably
    }

    /// The time between two checks of the space for a session, if this queue releases no space.
    private static let spaceCheckInterval = Duration.seconds(30)
    /// The minimum time between two checks of the space for a session.
    private static let minimumSpaceCheckInterval = Duration.seconds(5)
    /// The minimum time between a release of space and a check. During this time, the queue removes the part files of a cancelled download.
    private static let removalTime = Duration.seconds(1)

    /// Makes a session without a slot wait for disk space or another resource of this machine.
    mutating func waitForSpace(_ key: SessionKey, _ shortage: TransferError, at now: DualInstant) {
        mutate(key) { entry, details in
            entry.conditions.insert(.noSpace)
            entry.conditions.remove(.spaceReleased)
            details.spaceCheckAt = now.uptime + Self.spaceCheckInterval
            details.shortage = shortage
        }
    }

    mutating func recordReleasedSpace(_ released: ReleasedSpace) {
        if flags.releasedSpace.map({ $0 < released }) ?? true { mutateFlags { $0.releasedSpace = released } }
    }

    /// If this queue may have released space, makes the sessions that wait for space check it again soon. Until these checks, the queue is
    /// not idle. Changes at most ``maximumPerTransaction`` sessions.
    ///
    /// If space was only possibly released, does nothing while sessions run: many sessions may wait for space, each check occupies a slot, and
    /// each completed file possibly releases space.
    mutating func wakeSessionsShortOfSpace(at now: DualInstant) {
        guard let released = flags.releasedSpace, released == .probably || sessionIndex.live.isEmpty else { return }
        for key in sessionIndex.shortOfSpace.prefix(Self.maximumPerTransaction) {
            mutate(key) { entry, details in
                guard let nextCheck = details.spaceCheckAt else { return }
                let lastCheck = nextCheck - Self.spaceCheckInterval
                details.spaceCheckAt = max(now.uptime + Self.removalTime, lastCheck + Self.minimumSpaceCheckInterval)
                entry.conditions.insert(.spaceReleased)
            }
        }
        guard sessionIndex.shortOfSpace.isEmpty else { return }
        // A session that runs now may have checked the space too early.
        let remaining: ReleasedSpace? = sessionIndex.live.isEmpty ? nil : .possibly
        if flags.releasedSpace != remaining { mutateFlags { $0.releasedSpace = remaining } }
    }
}
