import TransferControl
import TransferCore
import TransferKit

/// Runs a queue in the foreground, once.
struct ForegroundRun {
    /// When a run ends by itself.
    enum End {
        /// When nothing runs and nothing can start without a person.
        case whenIdle
        /// When nothing runs and nothing can start right now.
        case whenNothingCanStart
        case never
    }

    let queue: TransferQueue
    /// Lets other processes control the queue; nil where there can't be a socket.
    let server: ControlServer?
    let style: ProgressStyle
    let end: End

    /// Returns when the queue is idle or a signal came, with the queue shut down.
    func run(until signals: TerminationSignals) async throws -> ExitStatus {
        let before = await queue.status()
        let display = await style.display(of: queue)
        // Subscribed before the start, so that nothing is missed.
        let (shown, counted) = (queue.events, queue.events)
        await display.begin()
        async let showing: Void = Self.show(shown, on: display)
        async let tally = RunTally(counting: counted)
        signals.whenReceived { Task { await shutDown() } }
        do {
            try await queue.start()
        } catch {
            // Ends both subscriptions, which are waited for on the way out.
            await shutDown()
            await showing
            // A signal before the start has shut the queue down.
            if signals.isReceived { return .interrupted }
            throw error
        }
        switch end {
        case .whenIdle: await waitForEnd(scheduled: true)
        case .whenNothingCanStart: await waitForEnd(scheduled: false)
        case .never: for await _ in queue.events {}
        }
        let remaining = await queue.status()
        let blocked = await queue.accounts().filter { $0.block != nil && $0.sessions > 0 }
        let waiting = remaining.waiting > 0 ? await firstWaiting(of: remaining) : []
        let removalsDue = signals.isReceived ? 0 : (try? await queue.statistics().removalsDue) ?? 0
        // What is due later, or comes behind such a session, needs no person; what was begun was to arrive.
        let startsByItself =
            end == .whenNothingCanStart && remaining.mode == .running && !remaining.isIdle && blocked.isEmpty
            && waiting.allSatisfy { $0.startedAt == nil }
        await shutDown()
        await showing
        let wasInterrupted = signals.isReceived
        let counts = await tally
        let obstacle = waiting.lazy.compactMap(\.why).first(where: Self.isObstacle)
        await display.finish(
            RunSummary(
                wasInterrupted: wasInterrupted, completed: counts.completed, failed: counts.failed.count,
                waiting: remaining.waiting, paused: remaining.paused, held: counts.held.count, blocked: blocked,
                obstacle: obstacle, removalsDue: removalsDue))
        // Without a display, an exit status alone would not say what is missing on this machine.
        if style == .none, !wasInterrupted, let obstacle {
            await CommandContext.current.terminal.write("transferq: \(obstacle.description)".withoutControlCharacters)
        }
        if wasInterrupted { return .interrupted }
        // A subscriber that could not keep up has the numbers of the queue to fall back on.
        let hasFailures = !counts.failed.isEmpty || (counts.hasGap && remaining.failed > before.failed)
        let needsPerson =
            (remaining.waiting > 0 && !startsByItself) || remaining.paused > 0 || !counts.held.isEmpty
            || (counts.hasGap && remaining.held > before.held)
        return hasFailures || needsPerson ? .incomplete : .done
    }

    /// The first thousand of the sessions that wait, however many others are before them.
    private func firstWaiting(of status: QueueStatus) async -> [SessionStatus] {
        let (page, wanted) = (1_000, min(status.waiting, 1_000))
        var found: [SessionStatus] = []
        var start = 0
        while found.count < wanted, let sessions = try? await queue.sessions(start..<start + page), !sessions.isEmpty {
            found += sessions.filter { $0.state == .waiting }
            start += page
        }
        return found
    }

    /// Whether a person has to do something about this machine, or about another session.
    private static func isObstacle(_ reason: WaitReason) -> Bool {
        switch reason {
        case .diskBelowFloor, .noSpace, .transportMissing, .networkConstraint, .lastRunNotEnded, .runsNotEnded, .storageRefusesChanges: true
        case .after(_, let state): [.held, .failed, .cancelled].contains(state)
        default: false
        }
    }

    func shutDown() async {
        await server?.shutDownQueue()
        await queue.shutdown()
    }

    /// Waits until nothing is left to do, also for what still runs in a queue that another process told to stop.
    private func waitForEnd(scheduled: Bool) async {
        var events = queue.events.makeAsyncIterator()
        while true {
            await queue.waitUntilIdle(scheduled: scheduled)
            // It does not wait for a queue that is about to stop, and another process may start it again.
            while true {
                let mode = await queue.status().mode
                if mode == .stopped { return }
                if mode == .running { break }
                guard await events.next() != nil else { return }
            }
            let status = await queue.status()
            if status.mode == .running, status.isIdle { return }
            if status.mode == .running, !scheduled, await !queue.hasLiveRuns { return }
        }
    }

    private static func show(_ events: QueueEvents, on display: any ProgressDisplay) async {
        for await event in events { await display.take(event) }
    }
}
