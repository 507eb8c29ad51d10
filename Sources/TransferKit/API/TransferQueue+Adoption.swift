import TransferCore

/// Moves sessions between queues. The new queue adopts a session. The old queue withdraws the session: it removes the session, but keeps the
/// session's unfinished content.
extension TransferQueue {
    /// Adds a session with the progress that it made in another queue. The session's files resume from the checkpoints in this progress.
    /// Completed files are not transferred again.
    ///
    /// The session keeps its ID.
    ///
    /// A session with many items or much stored progress is added in several transactions. Until the last transaction, the session is a draft,
    /// which never runs, even if the process is killed. After an error, the draft may remain. To remove the draft, call ``withdraw(_:)``.
    ///
    /// - Throws: ``QueueError``, including the code `invalidRequest` if the queue already has the session.
    package nonisolated func adopt(_ draft: SessionDraft) async throws(QueueError) {
        let progress = draft.progress ?? []
        // An item is one row. A progress event changes the row of its file, and usually one checkpoint.
        let size = max(1, configuration.rowsPerSweep / 2)
        guard draft.items.count + progress.count > size else {
            try await mailbox.send(.command(.enqueue([draft])))
            return
        }
        var first = draft
        (first.items, first.progress) = (Array(draft.items.prefix(size)), nil)
        try await mailbox.send(.command(.saveDrafts([first])))
        for start in stride(from: first.items.count, to: draft.items.count, by: size) {
            let items = Array(draft.items[start..<min(start + size, draft.items.count)])
            try await mailbox.send(.command(.addItems(.id(draft.id), items)))
        }
        for start in stride(from: 0, to: progress.count, by: size) {
            let page = Array(progress[start..<min(start + size, progress.count)])
            try await mailbox.send(.command(.addProgress(.id(draft.id), page)))
        }
        try await mailbox.send(.command(.perform(.enqueue(), .one(.id(draft.id)))))
    }

    /// Runs a waiting or running session now, like ``ControllableQueue/run(_:again:)``. Has no effect on a session in any other state, or on a
    /// session that was revoked (``revoke(_:)``).
    package func runIfUnfinished(_ id: SessionID) async throws(QueueError) {
        // A session that begins to run between the two commands needs neither command, because it has no delay to skip.
        for state in [SessionState.running, .waiting] where !revoked.contains(id) {
            try await mailbox.send(.command(.perform(.run(), .found([id], of: .state(state)))))
        }
    }

    /// Whether a run of the session has not ended. Such a run may still send bytes, even if the queue has abandoned the run and
    /// the session has failed.
    package func hasUnendedRun(of id: SessionID) -> Bool {
        guard let key = scheduler.sessionIndex.key(of: id) else { return false }
        return scheduler.sessionIndex.details(key).run != 0 || scheduler.sessionIndex[key]?.conditions.contains(.runNotEnded) == true
    }

    /// Interrupts a session immediately, even while the database refuses changes. Until ``withdraw(_:)`` has removed the session, no run of the
    /// session begins.
    package func revoke(_ id: SessionID) {
        revoked.insert(id)
        for (number, run) in runs where run.id == id { interrupt(number) }
    }

    /// Interrupts a session, waits for the end of its run, and removes it from this queue. Unlike ``ControllableQueue/remove(_:isForced:)``, keeps
    /// unfinished uploads and part files, so that another queue can resume them.
    ///
    /// If the session does not exist, does nothing.
    ///
    /// - Throws: ``QueueError``, including the code `invalidTransition` if a run of the session did not end in time, and may still send bytes;
    ///   `CancellationError` if the task is cancelled. After an error, the session stays interrupted and no run begins, so call this method again.
    package func withdraw(_ id: SessionID) async throws {
        revoke(id)
        do {
            _ = try await apply(.hold, to: .id(id))
        } catch let error as QueueError where [.invalidTransition, .noSuchSession].contains(error.code) {
            // An ended session can't be held, and needs no hold.
        }
        while true {
            let version = runsEnded.version
            guard runs.values.contains(where: { $0.id == id }) else { break }
            try await runsEnded.wait(after: version)
        }
        do {
            _ = try await mailbox.send(.command(.withdraw(id)))
        } catch {
            guard error.code == .noSuchSession else { throw error }
        }
        revoked.remove(id)
    }
}
