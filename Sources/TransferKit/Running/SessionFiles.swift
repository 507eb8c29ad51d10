import TransferCore

/// The files of one run: which are in flight, which wait, and which come next.
///
/// Files start strictly in order of position. One that waits for longer than a slot is kept makes room for those after it, and goes first when
/// it is due.
struct SessionFiles {
    /// What the run waits for.
    enum Happening: Sendable {
        case file(FileRunner, Result<FileRunner.Outcome, any Error>)
        case page(Result<FilePage, any Error>)
        /// The store knows what it has to know of so many files that are about to begin.
        case prepared(Int)
        /// A waiting file may be due.
        case due
    }

    struct Waiting {
        let file: PendingFile
        let checkpoints: [String: StoredCheckpoint]
        var dueAt: Duration
        /// What it waits for, if an attempt failed.
        let error: TransferError?
    }

    private struct Starting {
        let runner: FileRunner
        let step: FileRunner.Step

        /// What has to be durable before it begins.
        var preparation: Task<Void, any Error>? {
            if case .attempt(let attempt) = step { attempt.preparation } else { nil }
        }
    }

    /// When so many files wait, no further one is tried: what is wrong is not theirs.
    private static let mostWaiting = 16

    let context: RunContext
    let record: EndpointRecord
    /// What happened to files that are not finished and not in flight.
    private(set) var histories: [Int64: FileHistory]

    private var feed = FileFeed()
    private var window = FileWindow()
    private let turns = RequestTurns()
    private var waiting: [Int64: Waiting] = [:]
    /// Those that begin as soon as the store knows of them, in order.
    private var prepared: [Starting] = []
    /// Whether something rings when the store does.
    private var isPreparing = false
    /// When it was last decided which of the waiting files are due.
    private var lookedAt = Duration.zero
    /// The next time that something rings for.
    private var alarmAt: Duration?
    /// Why a file that could start has no endpoint to ask.
    private var unavailable: TransferError?
    /// The first file that failed, by position; one that failed in an earlier run comes first.
    private var failure: (position: Int64, error: TransferError)?
    /// Files of which it was reported that they lack space.
    private var shortOfSpace: Set<Int64> = []
    /// Whether the run was interrupted before a file was finished.
    private var leavesFiles = false
    private var end: Result<RunOutcome, any Error>?

    init(context: RunContext, histories: [Int64: FileHistory]) {
        self.context = context
        record = EndpointRecord(location: context.live.endpointBefore)
        self.histories = histories
    }

    /// Runs until the run has to end. No attempt goes on when it returns.
    ///
    /// - Parameter failure: The error of a file that failed in an earlier run.
    /// - Throws: `CancellationError`; ``QueueError`` when the store can't be used.
    mutating func run(after failure: TransferError?) async throws -> RunOutcome {
        self.failure = failure.map { (-1, $0) }
        await withTaskGroup(of: Happening.self) { group in
            while end == nil, !Task.isCancelled {
                readAhead(&group)
                await startWhatMay(&group)
                guard end == nil, !Task.isCancelled else { break }
                if let outcome = outcomeIfNothingGoesOn() {
                    end = .success(outcome)
                } else {
                    setAlarm(&group)
                    guard let happening = await group.next() else { break }
                    if case .prepared(let count) = happening { await beginPrepared(count, &group) } else { handle(happening) }
                }
            }
            group.cancelAll()
            // They end as those do that have begun.
            for starting in prepared { begin(starting, &group) }
            for await happening in group { handle(happening) }
        }
        for (position, waiting) in waiting { histories[position]?.wait(until: waiting.dueAt, after: waiting.error) }
        if let end { return try end.get() }
        // What was told to end may have been done all the same.
        guard feed.isFinished, waiting.isEmpty, !leavesFiles else { throw CancellationError() }
        return .finished(failure: summary, itemsSeen: feed.filesSeen ?? 0)
    }

    // MARK: Starting

    private mutating func readAhead(_ group: inout TaskGroup<Happening>) {
        guard let position = feed.pageToRead() else { return }
        let (store, key) = (context.store, context.key)
        group.addTask {
            do {
                return .page(.success(try await store.page(of: key, after: position, limit: FileFeed.pageSize)))
            } catch {
                return .page(.failure(error))
            }
        }
    }

    private mutating func startWhatMay(_ group: inout TaskGroup<Happening>) async {
        await prepareWhatMay(&group)
        guard !isPreparing else { return }
        guard let last = prepared.last(where: { $0.preparation != nil })?.preparation else {
            // They came while others waited for the store, and have nothing to wait for.
            for starting in prepared { begin(starting, &group) }
            prepared = []
            return
        }
        isPreparing = true
        let count = prepared.count
        group.addTask {
            _ = await last.result
            return .prepared(count)
        }
    }

    /// Begins the first of those that waited for the store, which share its transactions with all that came meanwhile.
    private mutating func beginPrepared(_ count: Int, _ group: inout TaskGroup<Happening>) async {
        isPreparing = false
        for starting in prepared.prefix(count) {
            // Stored in their order, so it is no more than a moment behind the last one's.
            _ = await starting.preparation?.result
            begin(starting, &group)
        }
        prepared.removeFirst(count)
    }

    private mutating func prepareWhatMay(_ group: inout TaskGroup<Happening>) async {
        unavailable = nil
        while end == nil, !Task.isCancelled {
            lookedAt = context.clock.now()
            guard let next = nextFile, admits(next.size ?? 0, limit: context.options.filesInFlight) else { return }
            guard let availability = await context.currentEndpoints() else {
                end = .failure(CancellationError())
                return
            }
            unavailable = availability.available.isEmpty ? availability.error : nil
            let inOrder = availability.ordered(for: next, context.transports)
            if let transport = inOrder.available.first.flatMap({ context.transports[$0.transport] }) {
                window.smallFiles = transport.smallFilesInFlight
                window.smallFilesAhead = transport.smallFilesAhead
                turns.setLimit(context.options.filesInFlight == nil ? max(1, window.smallFiles) : .max)
            }
            guard unavailable == nil, let (file, checkpoints) = takeNext() else { return }
            readAhead(&group)
            let history = histories[file.position] ?? FileHistory()
            if let dueAt = history.dueAt, dueAt > context.clock.now() {
                waiting[file.position] = Waiting(file: file, checkpoints: checkpoints, dueAt: dueAt, error: history.waitsAfter)
                continue
            }
            await start(
                FileRunner(
                    context: context, record: record, turns: turns, file: file, checkpoints: checkpoints, history: history,
                    availability: availability),
                &group)
        }
    }

    private mutating func start(_ starting: FileRunner, _ group: inout TaskGroup<Happening>) async {
        var runner = starting
        let step: FileRunner.Step
        do {
            step = try await runner.next()
        } catch {
            handle(.file(runner, .failure(error)))
            return
        }
        histories[runner.file.position] = nil
        window.insert(runner.file.position, size: runner.file.size ?? 0)
        let starting = Starting(runner: runner, step: step)
        if prepared.isEmpty, starting.preparation == nil { begin(starting, &group) } else { prepared.append(starting) }
    }

    private func begin(_ starting: Starting, _ group: inout TaskGroup<Happening>) {
        let (runner, step) = (starting.runner, starting.step)
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            group.addImmediateTask { await Self.run(runner, from: step) }
        } else {
            group.addTask { await Self.run(runner, from: step) }
        }
    }

    private static func run(_ runner: FileRunner, from step: FileRunner.Step) async -> Happening {
        var runner = runner
        do {
            let outcome = try await runner.run(from: step)
            return .file(runner, .success(outcome))
        } catch {
            return .file(runner, .failure(error))
        }
    }

    /// The first file that is due; otherwise the next one of all, unless too many wait already.
    private var firstDue: Waiting? {
        waiting.values.filter { $0.dueAt <= lookedAt }.min { $0.file.position < $1.file.position }
    }

    private var mayTakeNew: Bool { waiting.count < Self.mostWaiting }

    /// What is not known to be large counts as small, until it is.
    private mutating func admits(_ size: Int64, limit: Int?) -> Bool {
        if limit == nil { for file in context.live.activeFiles { window.learn(file.position, size: file.size ?? 0) } }
        return window.admits(size: size, limit: limit)
    }

    private var nextFile: PendingFile? { firstDue?.file ?? (mayTakeNew ? feed.next : nil) }

    private mutating func takeNext() -> (PendingFile, [String: StoredCheckpoint])? {
        if let due = firstDue {
            waiting[due.file.position] = nil
            histories[due.file.position]?.stopWaiting()
            return (due.file, due.checkpoints)
        }
        return feed.take()
    }

    // MARK: What happened

    private mutating func handle(_ happening: Happening) {
        switch happening {
        case .prepared: break
        case .due:
            alarmAt = nil
        case .page(.success(let page)):
            feed.received(page)
        case .page(.failure(let error)):
            stop(with: .failure(error))
        case .file(let runner, let result):
            window.remove(runner.file.position)
            if case .success(.noSpace) = result {} else { retryForSpace() }
            switch result {
            case .success(let outcome): handle(outcome, of: runner)
            case .failure(let error):
                leavesFiles = true
                histories[runner.file.position] = runner.history
                if !(error is CancellationError) { stop(with: .failure(error)) }
            }
        }
    }

    private mutating func handle(_ outcome: FileRunner.Outcome, of runner: FileRunner) {
        if case .completed = outcome { return }
        if case .givenUp(let error) = outcome {
            giveUp(runner.file, error)
            if context.options.onItemFailure == .failSession { stop(with: .success(.finished(failure: error, itemsSeen: .max))) }
            return
        }
        if case .sessionFailed(let error) = outcome {
            giveUp(runner.file, error)
            stop(with: .success(.finished(failure: error, itemsSeen: .max)))
            return
        }
        leavesFiles = true
        histories[runner.file.position] = runner.history
        switch outcome {
        case .completed, .givenUp, .sessionFailed: break
        case .waits(let error):
            wait(runner, error)
        case .endpointsUnavailable(let error):
            unavailable = error
            wait(runner, nil)
        case .accountBlocked(let error, let account):
            stop(with: .success(.accountBlocked(error, account)))
        case .noSpace(let error) where !window.isEmpty:
            // It may fit when those in flight are done, whose space is reserved.
            waitForSpace(runner, error)
        case .noSpace(let error):
            stop(with: .success(.noSpace(error)))
        }
    }

    /// Until a file that lacks space is tried again while the same others are in flight.
    private static let spaceInterval = Duration.seconds(30)

    private mutating func waitForSpace(_ runner: FileRunner, _ error: TransferError) {
        var waiting = runner
        waiting.history.wait(until: context.clock.now() + Self.spaceInterval, after: error)
        histories[runner.file.position] = waiting.history
        wait(waiting, error, isNews: shortOfSpace.insert(runner.file.position).inserted)
    }

    /// A file in flight has ended: what lacks space may fit now.
    private mutating func retryForSpace() {
        let now = context.clock.now()
        for (position, file) in waiting where file.error?.failureClass == .noSpace { waiting[position]?.dueAt = min(file.dueAt, now) }
    }

    /// - Parameter isNews: Whether the failure was not reported before.
    private mutating func wait(_ runner: FileRunner, _ error: TransferError?, isNews: Bool = true) {
        let position = runner.file.position
        let now = context.clock.now()
        let dueAt = runner.history.dueAt ?? now
        waiting[position] = Waiting(file: runner.file, checkpoints: runner.checkpoints, dueAt: dueAt, error: error)
        // A failure that ends the run is told with its end.
        guard let error, isNews, end == nil, !window.isEmpty || mayTakeNew && !feed.isFinished else { return }
        context.live.disconnect { context.post(.attemptFailed(error, retryIn: dueAt - now, endsRun: $0)) }
    }

    private mutating func giveUp(_ file: PendingFile, _ error: TransferError) {
        context.post(.file(position: file.position, .failed(error)))
        if file.kind == .stream { context.streams.end(file.streamName, error) }
        context.live.finish(position: file.position, isCompleted: false, isSized: file.size != nil)
        if failure.map({ file.position < $0.position }) ?? true { failure = (file.position, error) }
    }

    /// The first reason counts.
    private mutating func stop(with result: Result<RunOutcome, any Error>) {
        if end == nil { end = result }
    }

    // MARK: The end

    private func outcomeIfNothingGoesOn() -> RunOutcome? {
        guard window.isEmpty else { return nil }
        if let unavailable { return .endpointsUnavailable(unavailable) }
        guard feed.isFinished || !mayTakeNew else { return nil }
        guard let next = waiting.values.min(by: { $0.dueAt < $1.dueAt }) else {
            return .finished(failure: summary, itemsSeen: feed.filesSeen ?? 0)
        }
        let delay = next.dueAt - context.clock.now()
        guard delay > RetryPolicy.slotKept else { return nil }
        let error = next.error ?? waiting.values.lazy.compactMap(\.error).first
        return .backoff(
            delay,
            error
                ?? TransferError(.unreachable, .connectionRefused, "The endpoint that has a part of \(next.file.source) can't be used now.")
        )
    }

    /// Rings when the first waiting file is due, and soon for one that is due and has no endpoint to ask.
    private mutating func setAlarm(_ group: inout TaskGroup<Happening>) {
        let now = context.clock.now()
        // One that became due since it was looked at rings, too; one that was due by then waits for a place.
        var times = waiting.values.map(\.dueAt).filter { $0 > lookedAt }
        if unavailable != nil { times.append(now + RetryPolicy.slotKept) }
        guard let next = times.min(), alarmAt.map({ next < $0 }) ?? true else { return }
        alarmAt = next
        let clock = context.clock
        group.addTask {
            try? await clock.sleep(next - now)
            return .due
        }
    }

    /// A session of one file fails with that file's own error; a larger one says how many failed, and why the first did.
    private var summary: TransferError? {
        guard let failure = failure?.error else { return nil }
        let statistics = context.live.statistics(at: context.clock.now())
        guard statistics.files > 1 else { return failure }
        return TransferError(
            failure.failureClass, .itemsFailed,
            "\(statistics.filesFailed) of \(statistics.files) files failed, the first because: \(failure.message)",
            cause: failure.cause)
    }
}
