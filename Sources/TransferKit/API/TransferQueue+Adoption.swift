import TransferCore

/// Sessions that a queue continues for another queue.
extension TransferQueue {
    /// Adds a session with known progress. Its files resume from the checkpoints in the progress, and completed files are not transferred again.
    ///
    /// The session keeps its ID, so the IDs of its transfers are also the same in all queues.
    ///
    /// - Throws: ``QueueError``, including the code `invalidRequest` if the queue already has the session.
    package nonisolated func adopt(_ draft: SessionDraft) async throws(QueueError) {
        try await mailbox.send(.command(.enqueue([draft])))
    }

    /// Interrupts a session, waits for the end of its run, and removes it from this queue. Unlike ``ControllableQueue/remove(_:isForced:)``, keeps
    /// unfinished uploads and part files, so that another queue can continue them.
    ///
    /// If the session does not exist, does nothing.
    ///
    /// - Throws: ``QueueError``, including the code `invalidTransition` if the session was started again during the call; `CancellationError` if
    ///   the task is cancelled.
    package func withdraw(_ id: SessionID) async throws {
        // An ended session can't be held, and needs no hold.
        _ = try? await apply(.hold, to: .id(id))
        while true {
            let version = runsEnded.version
            guard runs.values.contains(where: { $0.id == id }) else { break }
            try await runsEnded.wait(after: version)
        }
        do {
            try await mailbox.send(.command(.withdraw(id)))
        } catch {
            guard error.code == .noSuchSession else { throw error }
        }
    }
}
