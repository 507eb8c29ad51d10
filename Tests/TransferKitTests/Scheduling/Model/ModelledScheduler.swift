import TransferKit

/// A scheduler with everything that its owner does for it: it stores changes, and knows the runs.
struct ModelledScheduler {
    private struct RunName {
        var key: SessionKey
        var run: UInt64
    }

    private(set) var scheduler: Scheduler
    private(set) var lastEvents: [QueueEvent.Kind] = []
    private var store = StoreImage()
    private var remote = RemoteLedger()
    private var runs: [SessionID: [RunName]] = [:]
    private var names: [SessionKey: SessionID] = [:]

    init(_ settings: Scheduler.Settings) {
        scheduler = Scheduler(settings)
        scheduler.beginReadingTags()
    }

    /// Handles an event and starts what may then start, like the writer.
    mutating func step(_ event: ModelEvent, at now: DualInstant) -> Outcome {
        let (outcome, transaction) = decide(event, at: now)
        scheduler.commit()
        store.apply(transaction.writes)
        remote.apply(transaction.writes)
        lastEvents = transaction.events
        for case .run(let key, let id, let run, _) in transaction.actions {
            names[key] = id
            runs[id, default: []].append(RunName(key: key, run: run))
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
            outcome.answer = Answer(sessions: transaction.answer.sessions, held: transaction.answer.held)
            if case .command = event { outcome.answer?.isGranted = transaction.answer.isGranted }
        } catch {
            outcome.code = error.code
            precondition(before.sessions == scheduler.sessions, "A refused call changed something: \(event)")
        }
        transaction.append(scheduler.schedule(at: now))
        for action in transaction.actions {
            switch action {
            case .run(_, let id, _, _): outcome.started.append(id)
            case .interrupt(let key, _): if let id = names[key] ?? scheduler.view(key)?.id { outcome.stopRequested.append(id) }
            default: break
            }
        }
        return (outcome, transaction)
    }

    /// Nil if no such run has begun.
    private func input(_ event: ModelEvent) -> Input? {
        switch event {
        case .command(.perform(let operation, .group(.tag(let tag)))):
            // Like the queue: only the store knows tags.
            return .command(.perform(operation, .found(store.sessions(tagged: tag), of: .tag(tag))))
        case .command(let command): return .command(command)
        case .tick: return .tick
        case .disk(let free): return .diskSpace(free)
        case .report(let id, let runsAgo, let content):
            guard let names = runs[id], names.count > runsAgo else { return nil }
            let name = names[names.count - 1 - runsAgo]
            return .report(RunEvent(key: name.key, run: name.run, content: content))
        }
    }

    /// Handles events, reverts them, and handles them again: the first pass may leave nothing behind, and the second must have the same
    /// result.
    ///
    /// - Returns: What was wrong; nil if nothing was.
    mutating func tryAndUndo(_ events: [ModelEvent], at now: DualInstant) -> String? {
        let before = observation(at: now)
        let first = attempt(events, at: now)
        scheduler.undo()
        if let what = observation(at: now).difference(from: before) { return what }
        let second = attempt(events, at: now)
        scheduler.undo()
        if let what = observation(at: now).difference(from: before) { return what }
        if let what = second.after.difference(from: first.after) { return "the second time: \(what)" }
        return second.text == first.text ? nil : "the second time, another transaction:\n\(first.text)\n\(second.text)"
    }

    private mutating func attempt(_ events: [ModelEvent], at now: DualInstant) -> (text: String, after: Observation) {
        let transactions = events.map { decide($0, at: now).1 }
        return ("\(transactions)", observation(at: now))
    }

    /// The process is killed, and another one opens the store.
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
            runs: runsAtWork)
    }

    private var runsAtWork: [String: Int] {
        let leftovers = scheduler.flags.ending.values.map { scheduler.accounts[$0]?.account.name ?? "" }
        return (scheduler.sessions.filter { $0.run != nil }.map(\.account) + leftovers).reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    /// What is wrong with the partial files at servers; nil if nothing is.
    var brokenRemotely: String? {
        let leftovers = runs.values.joined().filter { scheduler.flags.ending[$0.run] != nil }.map(\.key)
        return remote.broken(scheduler, leftovers: Set(leftovers))
    }

    func nextDue(after now: DualInstant) -> Duration? { scheduler.nextDue(after: now) }

    var limits: SlotLimits {
        let accounts = scheduler.accounts.values.map(\.account)
        return SlotLimits(
            queue: scheduler.sessionLimit,
            accounts: Dictionary(uniqueKeysWithValues: accounts.compactMap { account in account.sessionLimit.map { (account.name, $0) } }),
            owners: Dictionary(uniqueKeysWithValues: scheduler.sessions.map { ($0.id, $0.account) }))
    }
}
