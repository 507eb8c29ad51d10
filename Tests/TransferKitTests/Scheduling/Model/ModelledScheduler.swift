import TransferKit

/// A scheduler with a simulated writer, which stores the scheduler's changes and tracks the runs.
struct ModelledScheduler {
    private struct RunReference {
        var key: SessionKey
        var number: UInt64
    }

    private(set) var scheduler: Scheduler
    private(set) var lastEvents: [QueueEvent.Kind] = []
    private var store = StoreImage()
    private var remote = RemoteLedger()
    private var runs: [SessionID: [RunReference]] = [:]
    private var sessionIDs: [SessionKey: SessionID] = [:]

    init(_ settings: Scheduler.Settings) {
        scheduler = Scheduler(settings)
        scheduler.beginReadingTags()
    }

    /// Like the queue's writer, handles an event and then starts the sessions that can start.
    mutating func step(_ event: ModelEvent, at now: DualInstant) -> Outcome {
        let (outcome, transaction) = decide(event, at: now)
        scheduler.commit()
        store.apply(transaction.writes)
        remote.apply(transaction.writes)
        lastEvents = transaction.events
        for case .run(let key, let id, let run, _) in transaction.actions {
            sessionIDs[key] = id
            runs[id, default: []].append(RunReference(key: key, number: run))
        }
        return outcome
    }

    private mutating func decide(_ event: ModelEvent, at now: DualInstant) -> (Outcome, Transaction) {
        var outcome = Outcome()
        var transaction = Transaction()
        let before = scheduler
        do throws(QueueError) {
            if let input = input(event) {
                transaction = try scheduler.handle(input, at: now)
            }
            outcome.result = InputResult(sessions: transaction.result.sessions, held: transaction.result.held)
            if case .command = event { outcome.result?.isGranted = transaction.result.isGranted }
        } catch {
            outcome.code = error.code
            precondition(before.sessions == scheduler.sessions, "A rejected call changed something: \(event)")
        }
        transaction.append(scheduler.schedule(at: now))
        for action in transaction.actions {
            switch action {
            case .run(_, let id, _, _): outcome.started.append(id)
            case .interrupt(let key, _): if let id = sessionIDs[key] ?? scheduler.view(key)?.id { outcome.stopRequested.append(id) }
            default: break
            }
        }
        return (outcome, transaction)
    }

    /// Returns the scheduler's input for an event; nil for a report of a run that has not begun.
    private func input(_ event: ModelEvent) -> Input? {
        switch event {
        case .command(.perform(let operation, .group(.tag(let tag)))):
            // Like the queue, looks up the sessions in the stored data, because only the stored data contains the tags.
            return .command(.perform(operation, .found(store.sessions(tagged: tag), of: .tag(tag))))
        case .command(let command): return .command(command)
        case .tick: return .tick
        case .disk(let free): return .diskSpace(free)
        case .report(let id, let runsAgo, let content):
            guard let runs = runs[id], runs.count > runsAgo else { return nil }
            let run = runs[runs.count - 1 - runsAgo]
            return .report(RunEvent(key: run.key, run: run.number, content: content))
        }
    }

    /// Handles events and undoes the changes, twice. Each undo must revert all changes, and both passes must have the same result.
    ///
    /// - Returns: The first error; nil if everything is correct.
    mutating func tryAndUndo(_ events: [ModelEvent], at now: DualInstant) -> String? {
        let before = observation(at: now)
        let first = attempt(events, at: now)
        scheduler.undo()
        if let problem = observation(at: now).difference(from: before) { return problem }
        let second = attempt(events, at: now)
        scheduler.undo()
        if let problem = observation(at: now).difference(from: before) { return problem }
        if let problem = second.after.difference(from: first.after) { return "in the second pass: \(problem)" }
        return second.text == first.text ? nil : "the second pass returns a different transaction:\n\(first.text)\n\(second.text)"
    }

    private mutating func attempt(_ events: [ModelEvent], at now: DualInstant) -> (text: String, after: Observation) {
        let transactions = events.map { decide($0, at: now).1 }
        return ("\(transactions)", observation(at: now))
    }

    /// Simulates that the process is killed and another process opens the storage folder.
    mutating func restart() {
        scheduler = store.open(scheduler.settings)
        scheduler.beginReadingTags()
        remote.restart(scheduler)
        runs = [:]
        lastEvents = []
    }

    func observation(at now: DualInstant, withReasons: Bool = true) -> Observation {
        let status = scheduler.status(at: now)
        return Observation(
            mode: status.mode.rawValue, isIdle: status.isIdle, orderRevision: scheduler.orderRevision,
            sessions: scheduler.sessions.map { view in
                Observation.Session(
                    id: view.id, state: view.state, target: view.target, isEnding: view.isEnding, holdsSlot: view.holdsSlot,
                    hasRun: view.run != nil, why: withReasons && view.state == .waiting ? scheduler.why(view.key, at: now) : nil)
            },
            runs: runsPerAccount)
    }

    private var runsPerAccount: [String: Int] {
        let removedRuns = scheduler.flags.removedRuns.values.map { scheduler.accounts[$0]?.account.name ?? "" }
        return (scheduler.sessions.filter { $0.run != nil }.map(\.account) + removedRuns).reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    /// The first inconsistency between the ledger of partial uploads and the scheduler; nil if they agree.
    var remoteError: String? {
        let removed = runs.values.joined().filter { scheduler.flags.removedRuns[$0.number] != nil }.map(\.key)
        return remote.firstInconsistency(with: scheduler, endingSessions: Set(removed))
    }

    /// Returns a contradiction between the number of remaining sessions and the state of a started queue; nil if they agree.
    func remainingError(at now: DualInstant) -> String? {
        let (remaining, status) = (scheduler.remaining(at: now), scheduler.status(at: now))
        guard status.mode != .running || (remaining == 0) == status.isIdle else {
            return "\(remaining) sessions remain, but the queue is \(status.isIdle ? "" : "not ")idle"
        }
        let most = status.running + status.waiting + status.paused + scheduler.flags.removedRuns.count
        return remaining <= most ? nil : "\(remaining) sessions remain, but at most \(most) can remain"
    }

    func nextDue(after now: DualInstant) -> Duration? { scheduler.nextDue(after: now) }

    var limits: SlotLimits {
        let accounts = scheduler.accounts.values.map(\.account)
        return SlotLimits(
            queue: scheduler.maxConcurrentSessions,
            accounts: Dictionary(
                uniqueKeysWithValues: accounts.compactMap { account in account.maxConcurrentSessions.map { (account.name, $0) } }),
            owners: Dictionary(uniqueKeysWithValues: scheduler.sessions.map { ($0.id, $0.account) }))
    }
}
