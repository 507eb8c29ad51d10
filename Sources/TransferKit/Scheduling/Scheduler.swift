package import TransferCore

/// Decides what runs. A pure value: no clock, no input or output, nothing asynchronous; the same inputs give the same decisions.
///
/// One writer feeds it (see ``TransferQueue``), stores what it says in one transaction, and only then lets the world know. If the store refuses,
/// the writer calls ``undo()`` and the inputs never happened.
package struct Scheduler: Sendable {
    /// What the scheduler knows of a session; the rest is in the store only.
    package struct Entry: Sendable, Equatable {
        package var id: SessionID
        package var rank: Int64
        package var account: AccountKey
        package var state: SessionState
        /// Set when a stop of the queue or of the process interrupted it: it goes first.
        package var isInterrupted = false
        /// When the next attempt is due.
        package var retryAt: Moment?
        /// The run that it is in, or was in last.
        package var activation: UInt64 = 0
    }

    package struct AccountEntry: Sendable, Equatable {
        package var account: Account
        package var block: AccountBlock?
        package var sessions = 0
    }

    /// The small part of the state, copied whole for undo.
    package struct Flags: Sendable, Equatable {
        package var mode = QueueStatus.Mode.stopped
        package var orderRevision: UInt64 = 0
        package var lastActivation: UInt64 = 0
        package var nextSession: SessionKey = 1
        package var nextAccount: AccountKey = 1
        package var nextRank: Int64 = 0
        package var running: Set<SessionKey> = []
        /// Activations of removed sessions whose runs have yet to end; each still uses its slot.
        package var ending: Set<UInt64> = []
        package var isIdleAnnounced = false
        /// Sessions whose next attempt is due at a time.
        package var timed: Set<SessionKey> = []
    }

    package var slotsInUse: Int { flags.running.count + flags.ending.count }

    /// The distance between the ranks of neighbours, so that a session can be put between two others without touching either.
    package static let rankGap: Int64 = 1 << 20

    package let transports: Set<TransportID>
    package let sessionLimit: Int
    package private(set) var flags = Flags()
    package private(set) var order = SessionOrder()
    package private(set) var entries: [SessionKey: Entry] = [:]
    package private(set) var keys: [SessionID: SessionKey] = [:]
    package private(set) var accounts: [AccountKey: AccountEntry] = [:]
    package private(set) var accountKeys: [String: AccountKey] = [:]

    private var flagsBefore: Flags?
    private var journal: [Change] = []

    /// How to take back one change.
    private enum Change: Sendable {
        case entry(SessionKey, Entry)
        case inserted(SessionKey)
        case removed(SessionKey, Entry, at: Int)
        case account(AccountKey, AccountEntry?)
    }

    package init(transports: Set<TransportID>, sessionLimit: Int = 1) {
        self.transports = transports
        self.sessionLimit = sessionLimit
    }

    // MARK: Loading

    /// Takes over what the store holds; sessions come in the order of their ranks.
    package mutating func load(
        accounts stored: [(key: AccountKey, account: Account, block: AccountBlock?)], sessions: [(SessionKey, Entry)]
    ) {
        for row in stored {
            setAccount(row.key, AccountEntry(account: row.account, block: row.block))
            mutateFlags { $0.nextAccount = max($0.nextAccount, row.key + 1) }
        }
        for (key, entry) in sessions {
            insert(key, entry)
            mutateFlags {
                $0.nextSession = max($0.nextSession, key + 1)
                $0.nextRank = max($0.nextRank, entry.rank + Self.rankGap)
            }
        }
        commit()
    }

    // MARK: Changes, each with its way back

    /// The inputs since the last commit are durable.
    package mutating func commit() {
        journal.removeAll(keepingCapacity: true)
        flagsBefore = nil
    }

    /// The inputs since the last commit never happened.
    package mutating func undo() {
        while let change = journal.popLast() {
            switch change {
            case .entry(let key, let entry):
                entries[key] = entry
            case .inserted(let key):
                if let entry = entries.removeValue(forKey: key) {
                    keys[entry.id] = nil
                    accounts[entry.account]?.sessions -= 1
                }
                if let index = order.index(of: key) { order.remove(at: index) }
            case .removed(let key, let entry, let index):
                entries[key] = entry
                keys[entry.id] = key
                accounts[entry.account]?.sessions += 1
                order.insert(key, at: index)
            case .account(let key, let before):
                if let name = accounts[key]?.account.name { accountKeys[name] = nil }
                accounts[key] = before
                if let name = before?.account.name { accountKeys[name] = key }
            }
        }
        if let flagsBefore { flags = flagsBefore }
        flagsBefore = nil
    }

    package mutating func mutateFlags(_ change: (inout Flags) -> Void) {
        if flagsBefore == nil { flagsBefore = flags }
        change(&flags)
    }

    package mutating func mutate(_ key: SessionKey, _ change: (inout Entry) -> Void) {
        guard let before = entries[key] else { return }
        var entry = before
        change(&entry)
        guard entry != before else { return }
        journal.append(.entry(key, before))
        entries[key] = entry
    }

    package mutating func insert(_ key: SessionKey, _ entry: Entry) {
        journal.append(.inserted(key))
        entries[key] = entry
        keys[entry.id] = key
        accounts[entry.account]?.sessions += 1
        order.append(key)
    }

    /// Takes a session out; returns the index that it had.
    package mutating func take(_ key: SessionKey) -> Int? {
        guard let entry = entries.removeValue(forKey: key), let index = order.index(of: key) else { return nil }
        journal.append(.removed(key, entry, at: index))
        if entry.retryAt != nil { mutateFlags { $0.timed.remove(key) } }
        keys[entry.id] = nil
        accounts[entry.account]?.sessions -= 1
        order.remove(at: index)
        return index
    }

    /// Adds, replaces or, with nil, removes an account.
    package mutating func setAccount(_ key: AccountKey, _ entry: AccountEntry?) {
        let before = accounts[key]
        journal.append(.account(key, before))
        if let name = before?.account.name { accountKeys[name] = nil }
        accounts[key] = entry
        if let name = entry?.account.name { accountKeys[name] = key }
    }
}
