import TransferCore

/// A session that the app runs before its turn takes the slot of another one, which comes back when the first one gives the slot up. Each such
/// preemptor owns a list of those that it displaced, so nested runs unwind in order.
extension Scheduler {
    /// Makes room for a session that is to run now, if one slot more is all that it lacks.
    mutating func displace(for key: SessionKey, at now: Moment, _ transaction: inout Transaction) {
        guard flags.mode == .running, let entry = roster[key], entry.isClaimant, case .able = ability(of: entry, at: now),
            let victim = victim(for: entry, at: now)
        else { return }
        windDown(victim, &transaction) { entry, details in
            if entry.state == .running { entry.state = .waiting }
            entry.conditions.insert(.displaced)
            details.displacedBy = key
        }
    }

    /// The session whose slot a preemptor takes: never more than one, and none if that would not be enough.
    private func victim(for entry: Entry, at now: Moment) -> SessionKey? {
        let claimants = roster.claimants.compactMap { $0 == entry.key ? nil : roster[$0] }.filter {
            ability(of: $0, at: now).isAble
        }
        let taken = roster.slots.total - roster.slots.freed + claimants.count
        let isShort = taken >= sessionLimit
        var takenOfAccount = 0
        var isAccountShort = false
        if let limit = accounts[entry.account]?.account.sessionLimit {
            let slots = roster.accountSlots[entry.account] ?? Roster.Slots()
            takenOfAccount = slots.total - slots.freed + claimants.count { $0.account == entry.account }
            isAccountShort = takenOfAccount >= limit
            guard takenOfAccount - 1 < limit else { return nil }
        }
        guard isShort || isAccountShort, taken - 1 < sessionLimit else { return nil }
        let running = roster.live.compactMap { roster[$0] }.filter { $0.state == .running && !$0.conditions.contains(.ending) }
        // One that was displaced before its run let go has nothing more to give.
        let paused = roster.paused.compactMap { roster[$0] }.filter { $0.holdsSlot && !$0.freesSlot }
        for candidates in [running, paused] {
            let candidates = candidates.filter { $0.key != entry.key && (!isAccountShort || $0.account == entry.account) }
            if let lowest = candidates.max(by: { $0.rank < $1.rank }) { return lowest.key }
        }
        return nil
    }

    /// A preemptor gave its slot up, or will not use it: those that it displaced come back.
    mutating func letGoAll(of owner: SessionKey, _ transaction: inout Transaction) {
        guard let displaced = roster.owners[owner] else { return }
        for key in displaced.sorted() { letGo(key, &transaction) }
    }

    mutating func letGo(_ key: SessionKey, _ transaction: inout Transaction) {
        let held = roster[key]?.holdsSlot
        mutate(key) { entry, details in
            details.displacedBy = nil
            entry.conditions.remove(.displaced)
            if entry.state == .waiting, entry.lane > .letGo { entry.lane = .letGo }
        }
        // A paused one has its slot back.
        guard held == false, let entry = roster[key], entry.holdsSlot else { return }
        transaction.events += [.willActivate(entry.id), .didActivate(entry.id)]
    }

    /// Whether the order of the queue lets it start: in a strict queue, only the first unfinished one may, and those that are to run now.
    private func hasTurn(_ entry: Entry) -> Bool {
        settings.ordering == .inOrder || entry.lane == .now || roster.unfinished.first == entry.key
    }

    /// Lets go what is displaced by sessions that wait, and would not use the slot if they had one.
    mutating func letGoOfTheUnable(at now: Moment, _ transaction: inout Transaction) {
        guard flags.mode == .running else { return }
        var isChanged = true
        while isChanged {
            isChanged = false
            for owner in roster.owners.keys.sorted() {
                guard let entry = roster[owner], entry.state == .waiting, !entry.conditions.contains(.displaced),
                    !entry.conditions.isDisjoint(with: Entry.Conditions.preventing) || !hasTurn(entry)
                        || !ability(of: entry, at: now).isAble
                else { continue }
                letGoAll(of: owner, &transaction)
                isChanged = true
            }
        }
    }
}
