import TransferCore

/// Moves sessions between queues: the new queue adopts a session, the old queue withdraws it.
extension TransferQueue {
    /// Adds a session with known progress. Its files resume from the checkpoints in the progress, and completed files are not transferred again.
    ///
    /// The session keeps its ID, so the IDs of its transfers are also the same in all queues.
    ///
    /// - Throws: ``QueueError``, including the code `invalidRequest` if the queue already has the session.
    package nonisolated func adopt(_ draft: SessionDraft) async throws(QueueError) {
        try await mailbox.send(.command(.enqueue([draft])))
    }

    /// Interrupts a session immediately, even while the store refuses changes. No run of the session begins until ``withdraw(_:)`` has
    /// removed the session.
    package func revoke(_ id: SessionID) {
        revoked.insert(id)
        for (number, run) in runs where run.id == id { interrupt(number) }
    }

    /// Interrupts a session, waits for the end of its run, and removes it from this queue. Unlike ``ControllableQueue/remove(_:isForced:)``, keeps
    /// unfinished uploads and part files, so that another queue can continue them.
    ///
    /// If the session does not exist, does nothing.
    ///
    /// - Throws: ``QueueError``, including the code `invalidTransition` if a run of the session was abandoned, and may still send;
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
