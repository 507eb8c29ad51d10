extension TransferQueue {
    /// Lets sessions start, in turn. The next process starts with a stopped queue. A stop that is not done yet is called off. On a running
    /// queue: nothing.
    ///
    /// Sessions whose account no transport of this process serves stay waiting, with a warning in the log.
    ///
    /// - Throws: ``QueueError`` if the store fails or the queue was shut down.
    public nonisolated func start() async throws {
        try await mailbox.send(.command(.start))
        await warnOfMissingTransports()
    }

    /// Starts nothing new; what runs is interrupted, or may finish. Returns at once: the event `queueStopped` tells the end, and
    /// ``stopAndWait(_:deadline:)`` waits for it. On a stopped queue: nothing.
    ///
    /// Paused sessions are not waited for and stay paused.
    ///
    /// - Parameters:
    ///   - mode: Whether what runs is interrupted.
    ///   - deadline: When to interrupt after all what still runs in a drain; nil for never.
    /// - Throws: ``QueueError`` if the store fails or the queue was shut down.
    public nonisolated func stop(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws {
        try await mailbox.send(.command(.stop(mode, deadline: deadline)))
    }

    /// As ``stop(_:deadline:)``, and returns when the queue is stopped or was started again.
    ///
    /// - Throws: As ``stop(_:deadline:)``; `CancellationError` if the task is cancelled or the queue shut down, while the stop goes on.
    @discardableResult
    public nonisolated func stopAndWait(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws -> StopResult {
        var events = events.makeAsyncIterator()
        guard await stopProgress().mode != .stopped else { return .drained }
        try await stop(mode, deadline: deadline)
        while true {
            let progress = await stopProgress()
            switch progress.mode {
            case .stopped: return progress.hasInterrupted ? .interrupted : .drained
            case .running: return .restarted
            case .stopping, .draining: break
            }
            guard await events.next() != nil else { throw CancellationError() }
        }
    }

    private func stopProgress() async -> (mode: QueueStatus.Mode, hasInterrupted: Bool) {
        await settle()
        return (scheduler.flags.mode, scheduler.flags.hasInterrupted)
    }

    /// Sets how many sessions may be active at once, durably. Lowering it interrupts nothing: no session starts while more slots are in use.
    ///
    /// - Parameters:
    ///   - limit: At least 1; nil for what the configuration says, or for an account: no limit of its own.
    ///   - account: The account whose limit it is; nil for that of the queue.
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `invalidAccount` or `noSuchAccount`.
    public nonisolated func setSessionLimit(_ limit: Int?, account: String? = nil) async throws {
        try await mailbox.send(.command(.setSessionLimit(limit, account: account)))
    }

    /// Sets how fast bytes may move, durably, and in force within a second.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: At least 1; nil for no limit.
    ///   - account: The account whose limit it is; nil for that of the queue.
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `invalidAccount` or `noSuchAccount`.
    public nonisolated func setRateLimit(_ bytesPerSecond: Int64?, account: String? = nil) async throws {
        try await mailbox.send(.command(.setRateLimit(bytesPerSecond, account: account)))
    }

    /// Tells the queue of the network, for as long as this process goes on. In force at once: sessions that may not use it wait with the reason
    /// ``WaitReason/networkConstraint(_:)``. Those that run are interrupted at their next safe point, and go on by themselves, before the order of
    /// the queue, when they may again.
    ///
    /// The queue does not watch the network itself. An app calls this from whatever its platform has for that.
    ///
    /// - Throws: ``QueueError`` if the store fails or the queue was shut down.
    public nonisolated func setNetworkCondition(_ condition: NetworkCondition) async throws {
        try await mailbox.send(.command(.setNetwork(condition)))
    }

    /// Returns when nothing is due to be removed, at a server or of parts on this machine.
    package nonisolated func waitUntilDiscarded() async {
        await settle()
        await discards.waitUntilQuiet()
    }

    /// Whether any run is at work, also that of a session that was removed and has yet to let go: ``QueueStatus/running`` does not count those.
    public var hasLiveRuns: Bool {
        get async {
            await settle()
            return scheduler.hasLiveRuns
        }
    }

    /// Returns when the queue runs, nothing is running and nothing can start without a person; or, if `scheduled` is false, when nothing runs and
    /// nothing can start right now. Returns at once on a queue that does not run, or when the task is cancelled.
    ///
    /// Before that, what is to be removed at servers is tried: what is due, and once what earlier processes put off, for 30 s in all at most.
    /// Servers that asked for time are left alone. How much is left is in ``QueueStatistics/removalsDue``.
    ///
    /// - Parameter scheduled: Whether to wait for what is due at a time to come, such as the next attempt after a failure.
    public nonisolated func waitUntilIdle(scheduled: Bool = true) async {
        var events = events.makeAsyncIterator()
        while true {
            let version = leftoversEnded.version
            switch await activity(scheduled: scheduled) {
            case .stopped: return
            case .idle: return await discards.finish(within: Self.removalTime)
            case .leftovers: guard (try? await leftoversEnded.wait(after: version)) != nil else { return }
            case .busy:
                repeat {
                    guard let event = await events.next() else { return }
                    if !event.isProgress { break }
                } while true
            }
        }
    }

    private static let removalTime = Duration.seconds(30)

    private enum Activity {
        case stopped, idle, busy
        /// Nothing is at work but runs of sessions that were removed.
        case leftovers
    }

    private func activity(scheduled: Bool) async -> Activity {
        await settle()
        guard scheduler.flags.mode == .running else { return .stopped }
        if scheduler.isIdle(at: configuration.clock.moment) || (!scheduled && !scheduler.hasLiveRuns) { return .idle }
        return scheduler.roster.live.isEmpty && scheduler.hasLiveRuns ? .leftovers : .busy
    }
}
