import TransferCore

extension TransferQueue {
    /// Adds a session at the end of the queue. It is durable when the call returns.
    ///
    /// - Returns: A handle of the session.
    /// - Throws: As ``enqueue(_:)-([SessionRequest])``.
    @discardableResult
    public nonisolated func enqueue(_ request: SessionRequest) async throws -> TransferSession {
        let sessions = try await enqueue([request])
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "Nothing was enqueued.") }
        return session
    }

    /// Adds any number of sessions at the end of the queue, in this order, in one transaction: all or none. They are durable when the call
    /// returns.
    ///
    /// What the items name is looked at, not opened: each must be a readable regular file or folder. Folders are read when their session
    /// first runs. Bytes in memory are on disk when the call returns.
    ///
    /// - Returns: A handle of each session.
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, `invalidRequest`, `unreadableItems` or `storageUnavailable`; nothing is enqueued then.
    @discardableResult
    public nonisolated func enqueue(_ requests: [SessionRequest]) async throws -> [TransferSession] {
        let drafts = try await store.drafts(of: requests)
        do throws(QueueError) {
            try await mailbox.send(.command(.enqueue(drafts)))
        } catch {
            await store.discardBlobs(of: drafts.flatMap(\.items))
            throw error
        }
        return drafts.map { TransferSession(id: $0.id, queue: self) }
    }
}
