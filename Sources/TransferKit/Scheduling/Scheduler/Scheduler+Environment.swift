/// The environment of the queue: the network condition and the free disk space. Not stored.
extension Scheduler {
    /// The maximum time between two checks of the disk while its free space is below the floor (the minimum free space).
    private static let diskCheckInterval = Duration.seconds(30)

    // MARK: The network

    /// Sets the network condition, and interrupts runs that the network no longer permits. Their sessions get the start priority
    /// ``Entry/StartPriority/interrupted``. A change to any condition except `unavailable` also ends the retry delays of waiting sessions,
    /// and allows immediate probes of endpoints.
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

    /// Ends the waits for servers that could not be reached. Other failures keep their delays, so that frequent route changes,
    /// for example when containers start and stop, don't use up a file's attempts. A server's request to back off stays in effect.
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

    /// Records the free space on the disk of the storage folder, in bytes. Does nothing if the free space is not
    /// below the floor, and was not below it at the last check.
    mutating func record(freeSpace: Int64, at now: DualInstant) {
        let isScarce = freeSpace < diskFloor
        guard isScarce || flags.scarceSpace != nil else { return }
        mutateFlags {
            $0.scarceSpace = isScarce ? freeSpace : nil
            $0.diskCheckAt = now.uptime + Self.diskCheckInterval
        }
        sessionIndex.recallAllLines()
    }

    /// If a check of the disk was due, sets the time of the next check. The writer has already made the due check, because it reads the
    /// free space before it calls the scheduler.
    mutating func scheduleDiskCheck(at now: DualInstant) {
        guard flags.scarceSpace != nil, flags.diskCheckAt <= now.uptime else { return }
        mutateFlags { $0.diskCheckAt = now.uptime + Self.diskCheckInterval }
    }

    // MARK: Space for downloads

    /// The time between two checks of the space for a session, if this queue releases no space.
    private static let spaceCheckInterval = Duration.seconds(30)
    /// The minimum time between two checks of the space for a session.
    private static let minimumSpaceCheckInterval = Duration.seconds(5)
    /// The time between the end of a run and a check. During this time, the queue removes the part files of a cancelled download.
    private static let removalTime = Duration.seconds(1)

    /// Makes a session without a slot wait for disk space or file descriptors.
    mutating func waitForSpace(_ key: SessionKey, _ shortage: TransferError, at now: DualInstant) {
        mutate(key) { entry, details in
            entry.conditions.insert(.noSpace)
            details.spaceCheckAt = now.uptime + Self.spaceCheckInterval
            details.shortage = shortage
            if entry.conditions.contains(.spaceReleased) { Self.checkSpaceSoon(&details, at: now) }
        }
    }

    /// Records that this queue may have released disk space or file descriptors, because a run has ended or a part file was removed. The
    /// sessions that wait for space check it again soon. Changes at most ``maximumPerTransaction`` of these sessions.
    mutating func recordReleasedSpace(at now: DualInstant) {
        for key in sessionIndex.shortOfSpace.sorted().prefix(Self.maximumPerTransaction) {
            mutate(key) { entry, details in
                entry.conditions.insert(.spaceReleased)
                Self.checkSpaceSoon(&details, at: now)
            }
        }
        // These runs may have checked the space too early.
        for key in sessionIndex.live.sorted() { mutate(key) { entry, _ in entry.conditions.insert(.spaceReleased) } }
    }

    private static func checkSpaceSoon(_ details: inout EntryDetails, at now: DualInstant) {
        guard let nextCheck = details.spaceCheckAt else { return }
        let lastCheck = nextCheck - spaceCheckInterval
        details.spaceCheckAt = max(now.uptime + removalTime, lastCheck + minimumSpaceCheckInterval)
    }
}
