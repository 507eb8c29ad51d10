import Foundation
import TransferCore

/// Decides which sessions run. A pure value without clock, I/O or concurrency: the same inputs give the same decisions.
///
/// One writer passes inputs to the scheduler (see ``TransferQueue``), stores the result in one transaction, and only then publishes the
/// result. If the transaction fails, the writer calls ``undo()``, which reverts the effects of these inputs.
package struct Scheduler: Sendable {
    /// An account with the data that decides whether its sessions may start.
    package struct AccountEntry: Sendable, Equatable {
        package var account: Account
        package var block: AccountBlock?
        /// The number of the last run that had begun when the account was last saved or unblocked. Errors of this and earlier runs don't
        /// block the account.
        package var lastRunWhenUnblocked: UInt64
        /// Whether this process has already requested new credentials for the blocked account.
        var hasRequestedCredentials = false

        package init(account: Account, block: AccountBlock? = nil, lastRunWhenUnblocked: UInt64 = 0) {
            self.account = account
            self.block = block
            self.lastRunWhenUnblocked = lastRunWhenUnblocked
        }
    }

    /// The part of the state that is small enough to be copied as a whole. ``Scheduler/undo()`` restores the copy.
    package struct Flags: Sendable, Equatable {
        package var mode = QueueStatus.Mode.stopped
        /// The stored session limit; nil to use ``Settings/maxConcurrentSessions``.
        package var maxConcurrentSessions: Int?
        /// The session limit of this process, which overrides the stored limit; nil for none. Setting another limit removes the override.
        package var maxConcurrentSessionsOverride: Int?
        package var rateLimit: Int64?
        package var timetable: BandwidthTimetable?
        /// The stored retention; nil to use ``Settings/retention``.
        package var retention: Retention?
        /// The stored minimum free space, in bytes; nil to use ``Settings/diskFloor``.
        package var diskFloor: Int64?
        /// The minimum free space of this process, which overrides the stored minimum; nil for none. Setting another minimum removes the
        /// override.
        package var diskFloorOverride: Int64?
        package var orderRevision: UInt64 = 0
        package var lastRun: UInt64 = 0
        package var lastMark: Int64 = 0
        package var nextSession: SessionKey = 1
        package var nextAccount: AccountKey = 1
        /// The unfinished runs of removed sessions, and the account of each run. Each run still uses its slot.
        package var removedRuns: [UInt64: AccountKey] = [:]
        /// The abandoned runs that have not ended, and the session of each run. An abandoned run uses no slot.
        package var abandoned: [UInt64: SessionKey] = [:]
        package var isIdleAnnounced = false
        /// The uptime at which a drain ends and the remaining runs are interrupted; nil for no deadline.
        package var drainDeadline: Duration?
        /// Whether the last stop, or the stop in progress, interrupted a session.
        package var hasInterrupted = false
        package var health = EndpointHealth()
        package var runTimes = RunTimes()
        package var network = NetworkCondition.unconstrained
        /// The free space on the disk of the storage folder, in bytes; nil if it is not below the floor.
        package var scarceSpace: Int64?
        /// The uptime of the next check of the disk. Used only while the free space is below the floor.
        package var diskCheckAt = Duration.zero
        /// Nil if ``wakeSessionsShortOfSpace(at:)`` need not schedule any checks of the space.
        package var releasedSpace: ReleasedSpace?
        /// Ended, removed or missing sessions whose dependents have not all been released or held yet.
        package var releases: [PendingRelease] = []
        /// The new tags of each session whose tags changed while a reader was looking up sessions by tag in the database.
        var newTags: [SessionKey: Set<String>] = [:]
    }

    /// The preferred distance between the ranks of neighbouring sessions. Leaves room to insert sessions without renumbering other sessions.
    package static let rankGap: Int64 = 1 << 20

    package let settings: Settings
    package private(set) var flags: Flags
    package internal(set) var sessionIndex: SessionIndex
    private(set) var accountIndex = AccountIndex()
    package var accounts: [AccountKey: AccountEntry] { accountIndex.entries }
    package var accountKeys: [String: AccountKey] { accountIndex.keys }

    private var flagsBefore: Flags?
    private var undoLog: [Change] = []
    /// Sessions whose stored rows are out of date.
    private var dirty: [SessionKey] = []
    /// The uptime of the first input, and the steady date (``steadyDate(at:)``) at that time; nil before the first input.
    var opening: DualInstant?
    /// The steady date at which the queue was opened; nil if the database contains no steady date, or if ``Settings/openedAt`` is nil.
    var steadyOpening: Date?
    private var lastLoadedAccount: AccountKey?
    /// Sessions that were stored as running, because they were running when the last process ended.
    private(set) var foundRunning: [SessionKey] = []
    /// The waiting sessions that were held because each depends on a session that is missing from the database.
    private(set) var foundOrphaned: [SessionID] = []
    /// The sessions that have begun, according to the database. Used only while sessions are loaded.
    private var begunEarlier: Set<SessionKey> = []
    /// The number of rows changed since the last commit by removals of sessions, and by releases and holds of dependents.
    var changedRows = 0
    /// The number of readers that currently look up sessions by tag.
    private var tagReaders = 0
    private var storedSettings = QueueSettings()

    /// The data that reverts one change. Small, because one command may add 100,000 sessions.
    private enum Change: Sendable {
        indirect case changed(Entry, EntryDetails)
        case inserted(SessionKey)
        indirect case removed(Entry, EntryDetails)
        case renumbered(SessionKey, Int64)
        indirect case account(AccountKey, AccountEntry?)
    }

    /// A state to restore if a command turns out to be invalid.
    struct Savepoint {
        fileprivate let changes: Int
        fileprivate let dirty: Int
        fileprivate let flags: Flags
    }

    package init(_ settings: Settings) {
        self.settings = settings
        flags = Flags()
        flags.network = settings.network
        flags.maxConcurrentSessionsOverride = settings.maxConcurrentSessionsOverride
        flags.diskFloorOverride = settings.diskFloorOverride
        sessionIndex = SessionIndex(isStrict: settings.ordering == .strict, keepsEnds: settings.retention != .keepAll)
    }

    package var orderRevision: UInt64 { flags.orderRevision }

    /// The maximum number of sessions that use a slot. Always 1 in a strict queue.
    package var maxConcurrentSessions: Int {
        settings.ordering == .strict
            ? 1 : max(1, flags.maxConcurrentSessionsOverride ?? flags.maxConcurrentSessions ?? settings.maxConcurrentSessions)
    }

    package var retention: Retention { flags.retention ?? settings.retention }

    /// The free space on the disk of the storage folder, in bytes, below which no session starts.
    package var diskFloor: Int64 { flags.diskFloorOverride ?? flags.diskFloor ?? settings.diskFloor }

    package var slotsInUse: Int { sessionIndex.slots.total + flags.removedRuns.count }

    // MARK: Loading

    package mutating func reserveLoading(_ count: Int) {
        sessionIndex.reserveLoading(count)
    }

    /// Reserves all keys up to the given key, so that new sessions get higher keys.
    package mutating func reserveKeys(through key: SessionKey) {
        flags.nextSession = max(flags.nextSession, min(key, 1 << 62) + 1)
    }

    /// Sets the stored settings. Called before ``load(_:_:)`` loads the sessions.
    package mutating func load(_ stored: QueueSettings) {
        flags.maxConcurrentSessions = stored.maxConcurrentSessions
        flags.rateLimit = stored.rateLimit
        flags.orderRevision = stored.orderRevision
        flags.retention = stored.retention
        flags.diskFloor = stored.diskFloor
        flags.timetable = stored.timetable
        flags.releases = stored.releases.map { PendingRelease(session: $0, isCompleted: true) }
        storedSettings = stored
        sessionIndex.keepEnds(retention != .keepAll)
    }

    private var currentSettings: QueueSettings {
        QueueSettings(
            orderRevision: flags.orderRevision, maxConcurrentSessions: flags.maxConcurrentSessions, rateLimit: flags.rateLimit,
            retention: flags.retention, diskFloor: flags.diskFloor, timetable: flags.timetable,
            releases: flags.releases.filter { $0.isCompleted == true }.map(\.session))
    }

    /// Sets which sessions have begun. Called before ``load(_:_:)`` loads the sessions.
    package mutating func load(begun keys: Set<SessionKey>) {
        begunEarlier = keys
    }

    package mutating func load(_ key: AccountKey, _ entry: AccountEntry) {
        accountIndex.set(key, entry)
        flags.nextAccount = max(flags.nextAccount, key + 1)
    }

    /// Loads a session from the database. The order of the calls does not matter. A session that was running when the last process ended
    /// gets the start priority ``Entry/StartPriority/interrupted``.
    ///
    /// - Parameter details: The session's details; nil for a session without details, which is the usual case.
    /// - Returns: Whether the session was loaded; false if its account does not exist.
    package mutating func load(_ entry: Entry, _ details: EntryDetails?) -> Bool {
        if entry.account != lastLoadedAccount {
            guard accounts[entry.account] != nil else { return false }
            lastLoadedAccount = entry.account
        }
        var entry = entry
        if entry.state == .running {
            entry.state = .waiting
            entry.startPriority = .interrupted
            entry.conditions.insert(.begun)
            dirty.append(entry.key)
            foundRunning.append(entry.key)
        }
        if begunEarlier.contains(entry.key), !entry.state.isEnded { entry.conditions.insert(.begun) }
        flags.nextSession = max(flags.nextSession, entry.key + 1)
        if let details {
            if details.notBefore != nil { entry.conditions.insert(.early) }
            if details.dependency != nil { entry.conditions.insert(.dependent) }
            if details.displacedBy != nil { entry.conditions.insert(.displaced) }
            flags.lastMark = max(flags.lastMark, details.mark)
        }
        var details = details
        if let completedAt = details?.completedAt { details?.keptSince = plausible(completedAt) }
        if let deadlineFrom = details?.deadlineFrom { details?.deadlineFrom = plausible(deadlineFrom) }
        sessionIndex.load(entry, details)
        return true
    }

    /// Completes the loading. Restores a displaced session if its preemptor (the session that displaced it) is missing, or can't use the
    /// slot. Releases sessions whose dependency has ended as required, and holds waiting sessions whose dependency is missing.
    ///
    /// - Returns: The writes that update the database, and the sessions that were omitted because another session has the same ID.
    package mutating func finishLoading() -> (writes: [StoreWrite], duplicates: [SessionKey]) {
        begunEarlier = []
        let (renumbered, duplicates) = sessionIndex.finishLoading()
        for key in renumbered { dirty.append(key) }
        var ignored = Transaction()
        for preemptor in sessionIndex.displacedByPreemptor.keys.sorted() where !canPreempt(preemptor) {
            restoreDisplaced(of: preemptor, &ignored)
        }
        let satisfied = Set(flags.releases.map(\.session))
        flags.releases = []
        for id in sessionIndex.dependents.keys {
            // The session was completed or removed. The last process may have exited before it had released all dependents.
            guard !satisfied.contains(id) else {
                satisfyDependents(of: id, isCompleted: true)
                continue
            }
            guard let other = sessionIndex.key(of: id).flatMap({ sessionIndex[$0] }) else {
                foundOrphaned += holdDependents(of: id, &ignored)
                continue
            }
            // The last process may have exited before it released the dependents, for example while the run of a cancelled session was
            // ending.
            if other.state.isEnded { satisfyDependents(of: id, isCompleted: other.state == .completed) }
        }
        var transaction = Transaction()
        flush(into: &transaction)
        commit()
        return (transaction.writes, duplicates)
    }

    /// Whether a session can use the slot of a session that it displaced. The session, and all sessions that displaced it directly or
    /// indirectly, must exist and be neither ended nor held. No session may displace itself indirectly.
    private func canPreempt(_ key: SessionKey) -> Bool {
        var seen: Set<SessionKey> = []
        var next: SessionKey? = key
        while let key = next {
            guard let entry = sessionIndex[key], !entry.state.isEnded, entry.state != .held, seen.insert(key).inserted else { return false }
            next = sessionIndex.details(key).displacedBy
        }
        return true
    }

    // MARK: Reversible changes

    /// Makes the changes since the last commit final, because they are now durable.
    package mutating func commit() {
        undoLog.removeAll(keepingCapacity: undoLog.count < 4_096)
        changedRows = 0
        flagsBefore = nil
    }

    /// Reverts the changes since the last commit.
    package mutating func undo() {
        revert(to: 0)
        dirty.removeAll()
        changedRows = 0
        if let flagsBefore { flags = flagsBefore }
        flagsBefore = nil
        sessionIndex.recallAllLines()
        storedSettings = currentSettings
        sessionIndex.keepEnds(retention != .keepAll)
    }

    func savepoint() -> Savepoint {
        Savepoint(changes: undoLog.count, dirty: dirty.count, flags: flags)
    }

    mutating func rollBack(to savepoint: Savepoint) {
        revert(to: savepoint.changes)
        dirty.removeLast(dirty.count - savepoint.dirty)
        flags = savepoint.flags
        sessionIndex.keepEnds(retention != .keepAll)
        sessionIndex.recallAllLines()
    }

    private mutating func revert(to count: Int) {
        while undoLog.count > count, let change = undoLog.popLast() {
            switch change {
            case .changed(let entry, let details): sessionIndex.change(entry, details)
            case .inserted(let key): sessionIndex.remove(key)
            case .removed(let entry, let details): sessionIndex.insert(entry, details)
            case .renumbered(let key, let rank): sessionIndex.renumber(key, rank)
            case .account(let key, let before):
                accountIndex.set(key, before)
                sessionIndex.recallLines(of: key)
            }
        }
    }

    mutating func mutateFlags(_ change: (inout Flags) -> Void) {
        if flagsBefore == nil { flagsBefore = flags }
        change(&flags)
    }

    mutating func mutate(_ key: SessionKey, _ change: (inout Entry, inout EntryDetails) -> Void) {
        guard let before = sessionIndex[key] else { return }
        let detailsBefore = sessionIndex.details(key)
        var (entry, details) = (before, detailsBefore)
        change(&entry, &details)
        guard entry != before || details != detailsBefore else { return }
        undoLog.append(.changed(before, detailsBefore))
        // Some values are valid only in this process and are not stored.
        let isStored = ScheduleRow(entry: before, details: detailsBefore).durable != ScheduleRow(entry: entry, details: details).durable
        if isStored { dirty.append(key) }
        sessionIndex.change(entry, details)
    }

    /// Collects changes to tags from now on, because a reader looks up sessions by tag in the database.
    package mutating func beginReadingTags() {
        tagReaders += 1
    }

    package mutating func endReadingTags() {
        tagReaders -= 1
        if tagReaders == 0 { flags.newTags = [:] }
    }

    mutating func recordTags(_ tags: Set<String>, of key: SessionKey) {
        // Tags that were collected earlier are updated even if there is no reader now, so that they do not become outdated.
        guard tagReaders > 0 || flags.newTags[key] != nil else { return }
        mutateFlags { $0.newTags[key] = tags }
    }

    mutating func insert(_ entry: Entry, _ details: EntryDetails) {
        undoLog.append(.inserted(entry.key))
        sessionIndex.insert(entry, details)
    }

    mutating func removeEntry(_ key: SessionKey) {
        guard let entry = sessionIndex[key] else { return }
        undoLog.append(.removed(entry, sessionIndex.details(key)))
        sessionIndex.remove(key)
    }

    /// Gives a session a different rank, without changing its position in the order.
    mutating func renumber(_ key: SessionKey, _ rank: Int64) {
        guard let entry = sessionIndex[key] else { return }
        undoLog.append(.renumbered(key, entry.rank))
        dirty.append(key)
        sessionIndex.renumber(key, rank)
    }

    /// Adds or replaces an account, or removes it if `entry` is nil.
    mutating func setAccount(_ key: AccountKey, _ entry: AccountEntry?) {
        undoLog.append(.account(key, accounts[key]))
        accountIndex.set(key, entry)
        sessionIndex.recallLines(of: key)
    }

    /// Adds writes for the scheduling data and the settings that have changed since the last call.
    mutating func flush(into transaction: inout Transaction) {
        var seen: Set<SessionKey> = []
        for key in dirty where dirty.count == 1 || seen.insert(key).inserted {
            guard let entry = sessionIndex[key] else { continue }
            transaction.writes.append(.schedule(ScheduleRow(entry: entry, details: sessionIndex.details(key)).durable))
        }
        dirty.removeAll(keepingCapacity: dirty.count < 4_096)
        let settings = currentSettings
        if settings != storedSettings {
            storedSettings = settings
            transaction.writes.append(.settings(settings))
        }
    }
}
