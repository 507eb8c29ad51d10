import TransferKit

/// The stored data that a scheduler loads, computed from the scheduler's writes.
struct StoreImage {
    private var rows: [SessionKey: ScheduleRow] = [:]
    private var tags: [SessionKey: Set<String>] = [:]
    private var accounts: [AccountKey: Scheduler.AccountEntry] = [:]
    private var settings = QueueSettings()

    mutating func apply(_ writes: [StoreWrite]) {
        for write in writes {
            switch write {
            case .saveAccount(let key, let account): accounts[key] = Scheduler.AccountEntry(account: account)
            case .deleteAccount(let key): accounts[key] = nil
            case .blockAccount(let key, let block): accounts[key]?.block = block
            case .settings(let new): settings = new
            case .insertSessions(let sessions):
                sessions.forEach { row, draft in
                    rows[row.entry.key] = Self.stored(row)
                    tags[row.entry.key] = Set(draft.tags)
                }
            case .schedule(let row): rows[row.entry.key] = Self.stored(row)
            case .updateSession(let key, let update): if let new = update.tags { tags[key] = Set(new) }
            case .deleteSession(let key, _), .quarantine(let key, _):
                rows[key] = nil
                tags[key] = nil
            default: break
            }
        }
    }

    /// Returns the sessions with a tag, in the order of the queue.
    func sessions(tagged tag: String) -> [SessionID] {
        rows.values.filter { $0.entry.state != .draft && tags[$0.entry.key]?.contains(tag) == true }.sorted {
            $0.entry.rank < $1.entry.rank
        }.map(\.entry.id)
    }

    /// Returns a row with only the stored values. All other values are lost when the process ends.
    private static func stored(_ row: ScheduleRow) -> ScheduleRow {
        var stored = ScheduleRow(
            entry: Entry(id: row.entry.id, key: row.entry.key, rank: row.entry.rank, account: row.entry.account, state: row.entry.state))
        stored.entry.startPriority = row.entry.startPriority
        stored.entry.conditions = row.entry.conditions.intersection([.needsCheapNetwork, .hasTransferred])
        stored.details.mark = row.details.mark
        stored.details.notBefore = row.details.notBefore
        stored.details.dependency = row.details.dependency
        stored.details.displacedBy = row.details.displacedBy
        stored.details.deduplicationKey = row.details.deduplicationKey
        stored.details.completedAt = row.details.completedAt
        stored.details.deadline = row.details.deadline
        stored.details.deadlineFrom = row.details.deadlineFrom
        return stored
    }

    /// Returns the scheduler of a new process that loads this data.
    mutating func open(_ configured: Scheduler.Settings) -> Scheduler {
        var scheduler = Scheduler(configured)
        scheduler.load(settings)
        for (key, account) in accounts { scheduler.load(key, account) }
        for row in rows.values { _ = scheduler.load(row.entry, row.details == ScheduleRow(entry: row.entry).details ? nil : row.details) }
        apply(scheduler.finishLoading().writes)
        return scheduler
    }
}
