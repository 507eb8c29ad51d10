import TransferCore

/// Displacement: a session that the app runs out of turn (the preemptor) takes the slot of another session (the victim). When the preemptor
/// releases the slot, the victim is restored. Each preemptor has a list of the sessions that it displaced, so nested displacements are undone
/// in the right order.
extension Scheduler {
    /// Displaces another session, so that a preemptor gets the slot of that session. Does nothing unless exactly one slot is missing, and
    /// the preemptor could start with this slot.
    mutating func displace(for key: SessionKey, at now: DualInstant, _ transaction: inout Transaction) {
        guard flags.mode == .running, let entry = sessionIndex[key], entry.isClaimant, !isOverdue(entry),
            case .able = ability(of: entry, at: now),
            let victim = victim(for: entry, at: now)
        else { return }
        requestStop(victim, &transaction) { entry, details in
            if entry.state == .running { entry.state = .waiting }
            entry.conditions.insert(.displaced)
            details.displacedBy = key
        }
    }

    private func victim(for entry: Entry, at now: DualInstant) -> SessionKey? {
        // The slots that will not become free when runs end, plus one slot for each other claimant (``Entry/isClaimant``) that can start.
        var usedSlots = sessionIndex.slots.total - sessionIndex.slots.freed
        var claimants: [Entry] = []
        for key in sessionIndex.claimants where key != entry.key {
            guard let other = sessionIndex[key], ability(of: other, at: now).isAble else { continue }
            claimants.append(other)
            usedSlots += 1
            // The search ends early, because there may be very many claimants.
            guard usedSlots - 1 < maxConcurrentSessions else { return nil }
        }
        let isShort = usedSlots >= maxConcurrentSessions
        var usedAccountSlots = 0
        var isAccountShort = false
        if let limit = accounts[entry.account]?.account.maxConcurrentSessions {
            let slots = sessionIndex.accountSlots[entry.account] ?? SessionIndex.Slots()
            usedAccountSlots = slots.total - slots.freed + claimants.count { $0.account == entry.account }
            isAccountShort = usedAccountSlots >= limit
            guard usedAccountSlots - 1 < limit else { return nil }
        }
        guard isShort || isAccountShort, usedSlots - 1 < maxConcurrentSessions else { return nil }
        let running = sessionIndex.live.compactMap { sessionIndex[$0] }.filter {
            $0.state == .running && !$0.conditions.contains(.stopping)
        }
        // Omits sessions that were displaced earlier, but whose runs have not ended. Their slots become free anyway.
        let paused = sessionIndex.paused.compactMap { sessionIndex[$0] }.filter { $0.holdsSlot && !$0.freesSlot }
        for candidates in [running, paused] {
            let candidates = candidates.filter { $0.key != entry.key && (!isAccountShort || $0.account == entry.account) }
            if let lowest = candidates.max(by: { $0.rank < $1.rank }) { return lowest.key }
        }
        return nil
    }

    /// Restores the sessions that a preemptor displaced, because the preemptor has released its slot, or will not use a slot.
    mutating func restoreDisplaced(of preemptor: SessionKey, _ transaction: inout Transaction) {
        guard let displaced = sessionIndex.displacedByPreemptor[preemptor] else { return }
        for key in displaced.sorted() { restore(key, &transaction) }
    }

    /// Restores a displaced session. A waiting session starts before the sessions in queue order; a paused session gets its slot back.
    mutating func restore(_ key: SessionKey, _ transaction: inout Transaction) {
        let held = sessionIndex[key]?.holdsSlot
        mutate(key) { entry, details in
            details.displacedBy = nil
            entry.conditions.remove(.displaced)
            if entry.state == .waiting, entry.startPriority > .released { entry.startPriority = .released }
        }
        // Report that a paused session has a slot again.
        guard held == false, let entry = sessionIndex[key], entry.holdsSlot else { return }
        transaction.events += [.willActivate(entry.id), .didActivate(entry.id)]
    }

    /// Restores the sessions that a preemptor displaced, if the preemptor is waiting and can't use their slots.
    mutating func restoreDisplacedByBlocked(at now: DualInstant, _ transaction: inout Transaction) {
        guard flags.mode == .running else { return }
        var isChanged = true
        while isChanged {
            isChanged = false
            for preemptor in sessionIndex.displacedByPreemptor.keys.sorted() {
                guard let entry = sessionIndex[preemptor], entry.state == .waiting, !entry.conditions.contains(.displaced),
                    !entry.conditions.isDisjoint(with: Entry.Conditions.preventing) || !hasTurn(entry)
                        || !ability(of: entry, at: now).isAble
                else { continue }
                restoreDisplaced(of: preemptor, &transaction)
                isChanged = true
            }
        }
    }
}
