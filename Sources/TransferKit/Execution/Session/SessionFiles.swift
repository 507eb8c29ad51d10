import Foundation
import TransferCore

/// Transfers the files of one run. Holds the files in flight, the waiting files and the next files.
///
/// Files start in order of position. If a file must wait for longer than `RetryPolicy.maximumInPlaceDelay`, later files overtake it. When
/// the waiting file is due, it starts before new files.
struct SessionFiles {
    /// If this number of files are waiting, no new file starts: so many waiting files suggest a problem with the endpoint, not with the files.
    private static let maximumWaiting = 16

    let context: RunContext
    let record: EndpointRecord
    /// The histories of files that are neither finished nor in flight.
    private(set) var histories: [Int64: FileHistory]

    private var feed = FileFeed()
    private var window = FileWindow()
    private let turns: RequestTurns
    private var waiting: [Int64: WaitingFile] = [:]
    /// The prepared files, in order. Each file starts once its preparation (``PreparedFile/preparation``) is durable.
    private var prepared: [PreparedFile] = []
    /// Whether a task waits until the preparations of files are durable.
    private var isPreparing = false
    /// The uptime at which the run last determined which waiting files are due.
    private var dueCheckedAt = Duration.zero
    /// The last handled version of ``LiveRun/backoffsSkipped``.
    private var skippedVersion = 0
    /// The uptime of the next alarm; nil if no alarm is set.
    private var alarmAt: Duration?
    /// The reason why no endpoint is available, if a file could otherwise start; nil in all other cases.
    private var unavailable: TransferError?
    /// The failed file with the lowest position; nil if no file failed. A failure in an earlier run has the position -1; a failure of the
    /// expansion has `Int64.max`.
    private var failure: (position: Int64, error: TransferError)?
    /// The files for which a lack of space was reported.
    private var shortOfSpace: Set<Int64> = []
    /// Whether a file was left unfinished.
    private var leavesFiles = false
    private var end: Result<RunOutcome, any Error>?
    /// The error that ended the expansion of the session's items. No more files start, and the run ends after the files in flight.
    private var expansionError: (any Error)?

    init(context: RunContext, histories: [Int64: FileHistory]) {
        self.context = context
        record = EndpointRecord(location: context.live.endpointBefore)
        turns = RequestTurns(clock: context.clock)
        self.histories = histories
    }

    /// Transfers the files until the run ends. No attempt is active when the method returns.
    ///
    /// - Parameters:
    ///   - failure: The error of a file that failed in an earlier run; nil if no file failed.
    ///   - expansion: Adds files to the database while other files are transferred; nil if the database already has all files.
    /// - Throws: `CancellationError`; ``QueueError`` when the database can't be used; ``TransferError`` when the expansion can't read a local
    ///   folder, for example because no file descriptor is free.
    mutating func run(after failure: TransferError?, expansion: ItemExpansion? = nil) async throws -> RunOutcome {
        self.failure = failure.map { (-1, $0) }
        await withTaskGroup(of: Event.self) { group in
            group.addTask { [live = context.live] in await Self.nextSkip(in: live, after: 0) }
            if let expansion {
                feed.beginGrowing()
                group.addTask { await expansion.run() }
                group.addTask { await expansion.next() }
            }
            while end == nil, !Task.isCancelled {
                readAhead(&group)
                await startReadyFiles(&group)
                guard end == nil, !Task.isCancelled else { break }
                if let expansionError, window.isEmpty {
                    end = .failure(expansionError)
                } else if skipBackoffs() {
                    continue
                } else if let outcome = outcomeIfIdle() {
                    end = .success(outcome)
                } else {
                    setAlarm(&group)
                    guard let event = await group.next() else { break }
                    switch event {
                    case .prepared(let count): await startPrepared(count, &group)
                    case .grown:
                        feed.grew()
                        if context.options.onItemFailure == .failSession { await checkExpandedItems() }
                        if let expansion { group.addTask { await expansion.next() } }
                    case .expanded(.success(nil)):
                        feed.endGrowing()
                        await checkExpandedItems()
                    case .backoffsSkipped(let version):
                        group.addTask { [live = context.live] in await Self.nextSkip(in: live, after: version) }
                    default: handle(event)
                    }
                }
            }
            group.cancelAll()
            if let end, !window.isEmpty || feed.isGrowing { await context.willEnd(with: (try? end.get()) ?? .interrupted) }
            // Starts the prepared files, too, so that cancellation ends them in the same way as the files in flight.
            for preparedFile in prepared { start(preparedFile, &group) }
            for await event in group { handle(event) }
        }
        for (position, waiting) in waiting { histories[position]?.wait(until: waiting.dueAt, after: waiting.error) }
        if let end { return try end.get() }
        // All files may have been completed despite the interruption.
        guard feed.isFinished, waiting.isEmpty, !leavesFiles else { throw CancellationError() }
        return .finished(failure: summary, ignoresNewFiles: false)
    }

    // MARK: Starting

    private mutating func readAhead(_ group: inout TaskGroup<Event>) {
        guard let position = feed.beginReading() else { return }
        let (store, key) = (context.store, context.key)
        group.addTask {
            do {
                return .page(.success(try await store.page(of: key, after: position, limit: FileFeed.pageSize)))
            } catch {
                return .page(.failure(error))
            }
        }
    }

    /// Handles the failures of items that could not be expanded.
    private mutating func checkExpandedItems() async {
        do {
            guard let found = try await context.store.firstFailure(of: context.key) else { return }
            failure = failure ?? (.max, found)
            if context.options.onItemFailure == .failSession { stop(with: .success(.finished(failure: found, ignoresNewFiles: true))) }
        } catch {
            stop(with: .failure(error))
        }
    }

    private mutating func startReadyFiles(_ group: inout TaskGroup<Event>) async {
        await prepareAdmittedFiles(&group)
        guard !isPreparing else { return }
        guard let last = prepared.last(where: { $0.preparation != nil })?.preparation else {
            // The remaining files have no preparation to store. They became ready while other files waited for the database.
            for preparedFile in prepared { start(preparedFile, &group) }
            prepared = []
            return
        }
        isPreparing = true
        let count = prepared.count
        group.addTask {
            _ = await last.result
            return .prepared(count: count)
        }
    }

    /// Starts the first `count` prepared files, which waited for the database.
    private mutating func startPrepared(_ count: Int, _ group: inout TaskGroup<Event>) async {
        isPreparing = false
        for preparedFile in prepared.prefix(count) {
            // The preparations are stored in order, so this one is already durable or soon will be.
            _ = await preparedFile.preparation?.result
            start(preparedFile, &group)
        }
        prepared.removeFirst(count)
    }

    private mutating func prepareAdmittedFiles(_ group: inout TaskGroup<Event>) async {
        unavailable = nil
        while end == nil, !Task.isCancelled {
            dueCheckedAt = context.clock.now()
            turns.setReachesLimit(nextFile.map { $0.size ?? 0 <= FileWindow.smallSize } ?? false)
            guard let next = nextFile, admits(next) else { return }
            guard let availability = await context.currentEndpoints() else {
                end = .failure(CancellationError())
                return
            }
            unavailable = availability.available.isEmpty ? availability.error : nil
            let inOrder = availability.ordered(for: next, context.transports)
            if let endpoint = inOrder.available.first, let transport = context.transports[endpoint.transport] {
                window.smallFiles = turns.limit(at: endpoint, of: context.options.filesInFlight == nil ? transport : nil)
                window.smallFilesAhead = transport.smallFilesAhead
            }
            // The window may have become smaller in the lines above.
            guard admits(next), unavailable == nil, let (file, checkpoints) = takeNext() else { return }
            readAhead(&group)
            let history = histories[file.position] ?? FileHistory()
            if let dueAt = history.dueAt, dueAt > context.clock.now() {
                waiting[file.position] = WaitingFile(file: file, checkpoints: checkpoints, dueAt: dueAt, error: history.waitsAfter)
                continue
            }
            await prepare(
                FileRunner(
                    context: context, record: record, turns: turns, file: file, checkpoints: checkpoints, history: history,
                    availability: availability),
                &group)
        }
    }

    /// Determines the first step of a file. Starts the file, unless this file or an earlier one must wait for the database.
    private mutating func prepare(_ initialRunner: FileRunner, _ group: inout TaskGroup<Event>) async {
        var runner = initialRunner
        let step: FileRunner.Step
        do {
            step = try await runner.next()
        } catch {
            handle(.file(runner, .failure(error)))
            return
        }
        histories[runner.file.position] = nil
        window.insert(runner.file.position, size: runner.file.size ?? 0)
        let preparedFile = PreparedFile(runner: runner, step: step)
        if prepared.isEmpty, preparedFile.preparation == nil { start(preparedFile, &group) } else { prepared.append(preparedFile) }
    }

    private func start(_ preparedFile: PreparedFile, _ group: inout TaskGroup<Event>) {
        let (runner, step) = (preparedFile.runner, preparedFile.step)
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            group.addImmediateTask { await Self.run(runner, from: step) }
        } else {
            group.addTask { await Self.run(runner, from: step) }
        }
    }

    /// The due file with the lowest position; nil if no waiting file is due.
    private var firstDue: WaitingFile? {
        waiting.values.filter { $0.dueAt <= dueCheckedAt }.min { $0.file.position < $1.file.position }
    }

    private var mayTakeNew: Bool { waiting.count < Self.maximumWaiting && expansionError == nil }

    /// Whether a file may start. A file of unknown size counts as small.
    private mutating func admits(_ file: PendingFile) -> Bool {
        let (size, limit) = (file.size ?? 0, context.options.filesInFlight)
        if limit == nil { for file in context.live.activeFiles { window.setSize(of: file.position, size: file.size ?? 0) } }
        return window.admits(size: size, limit: limit)
    }

    private var nextFile: PendingFile? { expansionError == nil ? firstDue?.file ?? (mayTakeNew ? feed.next : nil) : nil }

    private mutating func takeNext() -> (PendingFile, [String: StoredCheckpoint])? {
        if let due = firstDue {
            waiting[due.file.position] = nil
            histories[due.file.position]?.stopWaiting()
            return (due.file, due.checkpoints)
        }
        return feed.take()
    }

    // MARK: Events

    private mutating func handle(_ event: Event) {
        switch event {
        case .prepared, .grown, .expansionEnds, .expanded(.success(nil)), .backoffsSkipped, .cancelled: break
        case .expanded(.success(let outcome?)): stop(with: .success(outcome))
        case .expanded(.failure(let error as TransferError)):
            // For example, no file descriptor is free. The files in flight need not end for this reason.
            expansionError = error
            leavesFiles = true
        case .expanded(.failure(let error)): stop(with: .failure(error))
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
            if context.options.onItemFailure == .failSession { stop(with: .success(.finished(failure: error, ignoresNewFiles: true))) }
            return
        }
        if case .sessionFailed(let error) = outcome {
            giveUp(runner.file, error)
            stop(with: .success(.finished(failure: error, ignoresNewFiles: true)))
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
            // The file may fit after the files in flight have ended and released their reserved space.
            waitForSpace(runner, error)
        case .noSpace(let error):
            stop(with: .success(.noSpace(error)))
        }
    }

    /// The delay before a file that lacks space is retried, unless a file in flight ends earlier.
    private static let spaceInterval = Duration.seconds(30)

    private mutating func waitForSpace(_ runner: FileRunner, _ error: TransferError) {
        var waiting = runner
        waiting.history.wait(until: context.clock.now() + Self.spaceInterval, after: error)
        histories[runner.file.position] = waiting.history
        wait(waiting, error, isFirstReport: shortOfSpace.insert(runner.file.position).inserted)
    }

    /// Makes all waiting files due immediately, if the app or the user requested this since the last call.
    ///
    /// - Returns: Whether there was a request.
    private mutating func skipBackoffs() -> Bool {
        let version = context.live.backoffsSkipped.version
        guard version != skippedVersion else { return false }
        skippedVersion = version
        record.retryAll()
        if !waiting.isEmpty { context.post(.waitsSkipped) }
        let now = context.clock.now()
        for (position, file) in waiting { waiting[position]?.dueAt = min(file.dueAt, now) }
        for position in histories.keys { histories[position]?.stopWaiting() }
        return true
    }

    /// Makes the files that wait for space due immediately. Called when a file in flight has ended for any reason but a lack of space.
    private mutating func retryForSpace() {
        let now = context.clock.now()
        for (position, file) in waiting where file.error?.failureClass == .noSpace { waiting[position]?.dueAt = min(file.dueAt, now) }
    }

    /// Makes a file wait for its next attempt, and reports the error, if any.
    ///
    /// - Parameter isFirstReport: Whether to report the failure: false if the file's lack of space has already been reported.
    private mutating func wait(_ runner: FileRunner, _ error: TransferError?, isFirstReport: Bool = true) {
        let position = runner.file.position
        let now = context.clock.now()
        let dueAt = runner.history.dueAt ?? now
        waiting[position] = WaitingFile(file: runner.file, checkpoints: runner.checkpoints, dueAt: dueAt, error: error)
        // A failure that ends the run is reported together with the end of the run.
        guard let error, isFirstReport, end == nil, !window.isEmpty || mayTakeNew && !feed.isFinished else { return }
        context.live.disconnect { context.post(.attemptFailed(error, retryIn: dueAt - now, isLastInFlight: $0)) }
    }

    private mutating func giveUp(_ file: PendingFile, _ error: TransferError) {
        context.post(.file(position: file.position, .failed(error)))
        if file.kind == .stream { context.streams.end(file.streamName, error) }
        context.live.finish(position: file.position, isCompleted: false, isSized: file.size != nil)
        if failure.map({ file.position < $0.position }) ?? true { failure = (file.position, error) }
    }

    /// Ends the run. Only the first call has an effect.
    private mutating func stop(with result: Result<RunOutcome, any Error>) {
        if end == nil { end = result }
    }

    // MARK: The end

    private func outcomeIfIdle() -> RunOutcome? {
        guard window.isEmpty else { return nil }
        if let unavailable { return .endpointsUnavailable(unavailable) }
        guard feed.isFinished || !mayTakeNew else { return nil }
        guard let next = waiting.values.min(by: { $0.dueAt < $1.dueAt }) else {
            return .finished(failure: summary, ignoresNewFiles: false)
        }
        let delay = next.dueAt - context.clock.now()
        guard delay > RetryPolicy.maximumInPlaceDelay else { return nil }
        let error = next.error ?? waiting.values.lazy.compactMap(\.error).first
        return .backoff(
            delay,
            error
                ?? TransferError(
                    .unreachable, .connectionRefused, "The endpoint where the transfer of \(next.file.source) began is unavailable.")
        )
    }

    /// Sets the alarm for the time at which the next waiting file is due. If no endpoint is available, the alarm fires after at most
    /// `RetryPolicy.maximumInPlaceDelay`.
    private mutating func setAlarm(_ group: inout TaskGroup<Event>) {
        let now = context.clock.now()
        // Files that were due at the last check need no alarm: they start when the window admits them.
        var times = waiting.values.map(\.dueAt).filter { $0 > dueCheckedAt }
        if unavailable != nil { times.append(now + RetryPolicy.maximumInPlaceDelay) }
        guard let next = times.min(), alarmAt.map({ next < $0 }) ?? true else { return }
        alarmAt = next
        let clock = context.clock
        group.addTask {
            try? await clock.sleep(next - now)
            return .due
        }
    }

    /// The error of the session; nil if no file failed.
    private var summary: TransferError? { failure.map { context.summary(of: $0.error) } }
}
