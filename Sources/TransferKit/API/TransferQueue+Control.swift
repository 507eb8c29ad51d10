extension TransferQueue {
    /// Starts the queue, so that sessions start in turn. Cancels a stop that is in progress. No effect on a running queue. A newly opened
    /// queue is stopped.
    ///
    /// If this process has no transport for an account, the sessions of the account keep waiting, and the queue logs a warning.
    ///
    /// - Throws: ``QueueError`` if the database fails or the queue was shut down.
    public nonisolated func start() async throws {
        try await mailbox.send(.command(.start))
        await warnOfMissingTransports()
    }

    /// Stops the queue: no session starts, and running sessions are interrupted or finish first, depending on the mode. No effect on a stopped queue.
    ///
    /// Returns without waiting for running sessions. To wait until the queue has stopped, use ``stopAndWait(_:deadline:)`` or the event
    /// `queueStopped`. Paused sessions stay paused, and do not delay the stop.
    ///
    /// - Parameters:
    ///   - mode: Whether to interrupt running sessions.
    ///   - deadline: The time after which ``StopMode/drain`` interrupts the sessions that still run; nil for no deadline. No effect in the mode
    ///     ``StopMode/interrupt``.
    /// - Throws: ``QueueError`` if the database fails or the queue was shut down.
    public nonisolated func stop(_ mode: StopMode = .interrupt, deadline: Duration? = nil) async throws {
        try await mailbox.send(.command(.stop(mode, deadline: deadline)))
    }

    /// Same as ``stop(_:deadline:)``, but returns when the queue has stopped, or was started again.
    ///
    /// - Throws: The errors of ``stop(_:deadline:)``; `CancellationError` if the task is cancelled or the queue is shut down. In both cases, the
    ///   queue continues to stop.
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
        await waitForEarlierInputs()
        return (scheduler.flags.mode, scheduler.flags.hasInterrupted)
    }

    /// Sets and stores the maximum number of active sessions. A lower limit interrupts no session, but no other session starts until fewer slots are
    /// in use.
    ///
    /// - Parameters:
    ///   - limit: At least 1; nil for the limit of the configuration, or for no limit if an account is given.
    ///   - account: The account to limit; nil for the whole queue.
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `invalidAccount` or `noSuchAccount`.
    public nonisolated func setMaxConcurrentSessions(_ limit: Int?, account: String? = nil) async throws {
        try await mailbox.send(.command(.setMaxConcurrentSessions(limit, account: account)))
    }

    /// Sets and stores the maximum transfer rate. It takes effect within a second.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: At least 1; nil for no limit.
    ///   - account: The account to limit; nil for the whole queue.
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `invalidAccount` or `noSuchAccount`.
    public nonisolated func setRateLimit(_ bytesPerSecond: Int64?, account: String? = nil) async throws {
        try await mailbox.send(.command(.setRateLimit(bytesPerSecond, account: account)))
    }

    /// Sets and stores the rate limits that replace the limit of ``setRateLimit(_:account:)`` at some times of the week. The timetable, and
    /// each later change of the limit according to it, takes effect within a second.
    ///
    /// - Parameters:
    ///   - timetable: The rules; nil to remove the timetable.
    ///   - account: The account to limit; nil for the whole queue.
    /// - Throws: ``QueueError`` with the code `invalidRequest` or `noSuchAccount`.
    public nonisolated func setTimetable(_ timetable: BandwidthTimetable?, account: String? = nil) async throws {
        try await mailbox.send(.command(.setTimetable(timetable, account: account)))
    }

    /// Sets and stores how long completed sessions stay in the queue. Sessions that are past this limit are removed immediately.
    ///
    /// - Parameter retention: The policy; nil for the policy of the configuration.
    /// - Throws: ``QueueError`` with the code `invalidRequest` for a negative number or time, or a time of more than a hundred years.
    public nonisolated func setRetention(_ retention: Retention?) async throws {
        try await mailbox.send(.command(.setRetention(retention)))
    }

    /// Sets and stores the minimum free space on the disk of the storage folder, below which no session starts. It takes effect within a second.
    ///
    /// - Parameter bytes: The minimum in bytes; 0 for no minimum, nil for the minimum of the configuration.
    /// - Throws: ``QueueError`` with the code `invalidRequest` for a negative number, or for more than 64 PiB.
    public nonisolated func setDiskFloor(_ bytes: Int64?) async throws {
        try await mailbox.send(.command(.setDiskFloor(bytes)))
    }

    /// Sets the network condition for the lifetime of this process. It takes effect immediately.
    ///
    /// A session whose options forbid the current network waits with the reason ``WaitReason/networkConstraint(_:)``. If the session is
    /// running, the queue interrupts it. When the options allow the network again, the session resumes automatically, before sessions that
    /// have not started.
    ///
    /// The queue does not monitor the network. Call this method from the network monitor of your platform.
    ///
    /// - Throws: ``QueueError`` if the database fails or the queue was shut down.
    public nonisolated func setNetworkCondition(_ condition: NetworkCondition) async throws {
        try await mailbox.send(.command(.setNetwork(condition)))
    }

    /// Notifies the queue that this machine has no route to other machines. Until ``noteNewRoute()`` is called, a session that can't reach its
    /// server keeps retrying: the session neither fails nor switches to another endpoint for this reason.
    package nonisolated func noteLackOfRoutes() { routes.begin(at: configuration.clock.now()) }

    /// Notifies the queue that this machine has a new route. Sessions that wait because their server was unreachable retry immediately. After
    /// other failures, the delays still apply.
    package nonisolated func noteNewRoute() async throws {
        routes.end(at: configuration.clock.now())
        try await mailbox.send(.command(.newRoute))
    }

    /// Waits until no removal of remote content or of local part files is due.
    package nonisolated func waitUntilContentRemoved() async {
        await waitForEarlierInputs()
        await discards.waitUntilQuiet()
    }

    /// Whether a session checks within a few seconds whether it has enough space to run.
    package var checksSpaceSoon: Bool {
        get async {
            await waitForEarlierInputs()
            return scheduler.flags.mode == .running && !scheduler.sessionIndex.recheckingSpace.isEmpty
        }
    }

    /// Whether any run is in progress. Includes runs of removed sessions, which ``QueueStatus/running`` does not count. Excludes interrupted
    /// runs that did not end within 30 s.
    package var hasLiveRuns: Bool {
        get async {
            await waitForEarlierInputs()
            return scheduler.hasLiveRuns
        }
    }

    /// Returns when the queue is idle: it is started, no session runs, and no session can start without an action by the app or the user.
    /// Returns immediately if the queue is not started. Also returns when the queue begins to stop, or when the task is cancelled.
    ///
    /// Before the call returns, the queue spends at most 30 s on removing remote content. The queue attempts all due removals, and makes
    /// one attempt at each removal that an earlier process postponed. It skips servers that asked to back off, or that took too long in this
    /// process. ``QueueStatistics/removalsDue`` contains the number of remaining removals.
    ///
    /// - Parameter scheduled: Whether to wait for sessions that will start at a later time, for example for a retry. If false, the call
    ///   returns when no session runs and none can start now.
    public nonisolated func waitUntilIdle(scheduled: Bool = true) async {
        var events = events.makeAsyncIterator()
        while true {
            let version = removedRunsEnded.version
            switch await activity(scheduled: scheduled) {
            case .stopped: return
            case .idle: return await discards.finish(within: Self.removalTimeLimit)
            case .removedRuns: guard (try? await removedRunsEnded.wait(after: version)) != nil else { return }
            case .busy:
                repeat {
                    guard let event = await events.next() else { return }
                    if !event.isProgress { break }
                } while true
            }
        }
    }

    /// Whether ``shutdown()`` was called, so that the queue accepts no changes.
    package nonisolated var isShutDown: Bool { mailbox.isClosed }

    private static let removalTimeLimit = Duration.seconds(30)

    private enum Activity {
        case stopped, idle, busy
        /// All remaining runs belong to removed sessions.
        case removedRuns
    }

    private func activity(scheduled: Bool) async -> Activity {
        await waitForEarlierInputs()
        guard scheduler.flags.mode == .running else { return .stopped }
        if scheduler.isIdle(at: configuration.clock.moment) || (!scheduled && !scheduler.hasLiveRuns) { return .idle }
        return scheduler.sessionIndex.live.isEmpty && scheduler.hasLiveRuns ? .removedRuns : .busy
    }
}
