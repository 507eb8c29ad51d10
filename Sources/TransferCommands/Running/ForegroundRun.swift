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
    let style: ProgressStyle
    let end: End

    /// Returns when the queue is idle or a signal came, with the queue shut down.
    func run(until signals: TerminationSignals) async throws -> ExitStatus {
        let failedBefore = await queue.status().failed
        let display = await style.display(of: queue)
        // Subscribed before the start, so that nothing is missed.
        let (shown, counted) = (queue.events, queue.events)
        async let showing: Void = Self.show(shown, on: display)
        async let tally = RunTally(counting: counted)
        signals.whenReceived { [queue] in Task { await queue.shutdown() } }
        do {
            try await queue.start()
        } catch {
            // Ends both subscriptions, which are waited for on the way out.
            await queue.shutdown()
            await showing
            // A signal before the start has shut the queue down.
            if signals.isReceived { return .interrupted }
            throw error
        }
        switch end {
        case .whenIdle: await queue.waitUntilIdle()
        case .whenNothingCanStart: await queue.waitUntilIdle(scheduled: false)
        case .never: for await _ in queue.events {}
        }
        let remaining = await queue.status()
        let blocked = await queue.accounts().filter { $0.block != nil && $0.sessions > 0 }
        await queue.shutdown()
        await showing
        let wasInterrupted = signals.isReceived
        let counts = await tally
        await display.finish(
            RunSummary(
                wasInterrupted: wasInterrupted, completed: counts.completed, failed: counts.failed.count,
                waiting: remaining.waiting, paused: remaining.paused, blocked: blocked))
        if wasInterrupted { return .interrupted }
        // A subscriber that could not keep up has the numbers of the queue to fall back on.
        let hasFailures = !counts.failed.isEmpty || (counts.hasGap && remaining.failed > failedBefore)
        return hasFailures || remaining.waiting > 0 || remaining.paused > 0 ? .incomplete : .done
    }

    private static func show(_ events: QueueEvents, on display: any ProgressDisplay) async {
        for await event in events { await display.take(event) }
    }
}
