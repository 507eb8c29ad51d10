import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Runs a queue in the foreground until an end condition or a signal.
struct ForegroundRun {
    /// The condition that ends a run without a signal.
    enum EndCondition {
        /// No session is running, and none can start without user action.
        case whenIdle
        /// No session is running, and none can start now.
        case whenNothingCanStart
        case never
    }

    let queue: TransferQueue
    /// The control server for other processes; nil if its socket could not be opened.
    let server: ControlServer?
    let style: ProgressStyle
    let end: EndCondition

    /// Runs the queue until the end condition is met or a signal arrives, and then shuts the queue down.
    ///
    /// - Returns: `done`; `incomplete` if a session failed or needs user action; or `interrupted` after a signal.
    /// - Throws: The error if the queue can't start.
    func run(until signals: TerminationSignals) async throws -> ExitStatus {
        let statusBefore = await queue.status()
        let display = await style.display(of: queue)
        // Subscribes before the start, so that no event is missed.
        let (shown, counted) = (queue.events, queue.events)
        // A run that does not wait for later sessions needs no line about the wait.
        let waits = end == .whenNothingCanStart ? nil : queue.events
        await display.begin()
        async let showing: Void = Self.show(shown, on: display)
        async let showingWaits: Void = Self.showWaits(waits, of: queue, on: display)
        async let tally = RunTally(counting: counted)
        signals.whenReceived { Task { await shutDown() } }
        let routes = await RouteWatch.start(for: queue)
        defer { routes.cancel() }
        do {
            try await queue.start()
        } catch {
            // The shutdown ends the event subscriptions. Otherwise, the tasks that read them would never end, and this method would never return.
            await shutDown()
            await showing
            // A signal that arrived before the start has shut down the queue.
            if signals.isReceived { return .interrupted }
            throw error
        }
        repeat {
            switch end {
            case .whenIdle: await waitForEnd(scheduled: true)
            case .whenNothingCanStart: await waitForEnd(scheduled: false)
            case .never: for await _ in queue.events {}
            }
        } while await waitForNetwork(routes)
        let remaining = await queue.status()
        let blocked = await queue.accounts().filter { $0.blockingError != nil && $0.sessions > 0 }
        let waiting = remaining.waiting > 0 ? await queue.firstWaiting(of: remaining) : []
        let removalsDue = signals.isReceived ? 0 : (try? await queue.statistics().removalsDue) ?? 0
        // Sessions with a later start time, and sessions that wait for such sessions, need no user action. A session that has already started is
        // different: the run must complete it.
        let startsAutomatically =
            end == .whenNothingCanStart && remaining.mode == .running && !remaining.isIdle && blocked.isEmpty
            && waiting.allSatisfy { $0.startedAt == nil }
        await shutDown()
        await showing
        await showingWaits
        let wasInterrupted = signals.isReceived
        let counts = await tally
        let obstacle = waiting.lazy.compactMap(\.why).first(where: Self.isObstacle)
        await display.finish(
            RunSummary(
                wasInterrupted: wasInterrupted, completed: counts.completed, files: counts.files, bytes: counts.bytes,
                duration: .seconds(counts.busyTime.seconds), failed: counts.failed,
                waiting: remaining.waiting, paused: remaining.paused, held: counts.held.count,
                heldInQueue: remaining.held, blocked: blocked,
                obstacle: obstacle, removalsDue: removalsDue))
        // Without a display, the user would see only an exit status, not the reason.
        if style == .none, !wasInterrupted, let obstacle {
            await CommandContext.current.terminal.write("transferq: \(obstacle.advisedDescription)".withoutControlCharacters)
        }
        if wasInterrupted { return .interrupted }
        // If events were missed, the counts are incomplete, so this method also compares the numbers of sessions before and after the run.
        let hasFailures = !counts.failed.isEmpty || (counts.hasGap && remaining.failed > statusBefore.failed)
        let needsUserAction =
            (remaining.waiting > 0 && !startsAutomatically) || remaining.paused > 0 || !counts.held.isEmpty
            || (counts.hasGap && remaining.held > statusBefore.held)
        return hasFailures || needsUserAction ? .incomplete : .done
    }

    /// If a session waits for an unmetered network, waits until NetworkManager has reported whether the network is metered.
    ///
    /// - Returns: Whether a session waited for this report, so that the caller must check the end condition again.
    private func waitForNetwork(_ routes: RouteWatch) async -> Bool {
        let events = queue.events
        guard let response = await routes.firstResponse else { return false }
        let isNeeded = await queue.firstWaiting(of: queue.status()).contains { if case .networkConstraint = $0.why { true } else { false } }
        // The events end when a signal shuts down the queue.
        if isNeeded { _ = await RouteWatch.wait(for: response, or: Task { for await _ in events {} }) }
        return isNeeded
    }

    /// Whether the summary must name the reason, because the wait may last until the user acts.
    private static func isObstacle(_ reason: WaitReason) -> Bool {
        switch reason {
        case .diskBelowFloor, .noSpace, .transportMissing, .networkConstraint, .lastRunNotEnded, .runsNotEnded, .storageRefusesChanges: true
        case .after(_, let state): [.held, .failed, .cancelled].contains(state)
        default: false
        }
    }

    /// Shuts down the queue and the control server. Safe to call repeatedly.
    func shutDown() async {
        await server?.shutDownQueue()
        await queue.shutdown()
    }

    /// Waits until the end condition is met, or until the queue has stopped.
    ///
    /// - Parameter scheduled: Whether to wait for sessions that start later.
    private func waitForEnd(scheduled: Bool) async {
        var events = queue.events.makeAsyncIterator()
        // The mode is not sufficient: if changes can't be stored, a queue that was shut down keeps its mode.
        while !queue.isShutDown {
            await queue.waitUntilIdle(scheduled: scheduled)
            // waitUntilIdle also returns while the queue is stopping. Another process may then start the queue again.
            while true {
                let mode = await queue.status().mode
                if mode == .stopped { return }
                if mode == .running { break }
                guard await events.next() != nil else { return }
            }
            let status = await queue.status()
            if status.mode == .running, status.isIdle { return }
            guard status.mode == .running, !scheduled, await !queue.hasLiveRuns else { continue }
            guard await queue.checksSpaceSoon else { return }
            // The check causes events.
            guard await events.next() != nil else { return }
        }
    }

    private static func show(_ events: QueueEvents, on display: any ProgressDisplay) async {
        for await event in events { await display.show(event) }
    }
}
