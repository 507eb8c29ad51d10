extension TransferQueue {
    /// Lets sessions start, in turn. Durable state is untouched: the next process starts with a stopped queue. On a running queue: nothing.
    ///
    /// - Throws: ``QueueError`` if the store fails or the queue was shut down.
    public nonisolated func start() async throws {
        try await mailbox.send(.command(.start))
    }

    /// Starts nothing new and interrupts what runs; returns at once. The event `queueStopped` tells the end. On a stopped queue: nothing.
    ///
    /// - Throws: ``QueueError`` if the store fails or the queue was shut down.
    public nonisolated func stop() async throws {
        try await mailbox.send(.command(.stop(.interrupt)))
    }

    /// Removes sessions in any state. One that runs is interrupted. The sessions, what is known of their files, and their checkpoints are gone
    /// when the call returns; local sources and complete remote files are never touched.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession` if one does not exist; none is removed then.
    public nonisolated func remove(_ ids: [SessionID]) async throws {
        try await mailbox.send(.command(.perform(.remove(), .group(.sessions(ids)))))
    }

    /// Removes one session; see ``remove(_:)-([SessionID])``.
    public nonisolated func remove(_ id: SessionID) async throws {
        try await remove([id])
    }

    /// Returns when the queue runs, nothing is running, and nothing can start without a person, or, if `scheduled` is false, nothing can start
    /// right now. Returns at once on a queue that was shut down, or when the task is cancelled.
    ///
    /// - Parameter scheduled: Whether to wait for what is due at a time to come, such as the next attempt after a failure.
    public nonisolated func waitUntilIdle(scheduled: Bool = true) async {
        var events = events.makeAsyncIterator()
        while true {
            let status = await status()
            if status.mode != .running { return }
            if status.isIdle || (!scheduled && status.running == 0 && status.nextDue != nil) { return }
            repeat {
                guard let event = await events.next() else { return }
                if !event.isProgress { break }
            } while true
        }
    }
}
