import TransferCore

extension TransferQueue {
    /// Adds a session. The session is durable when the call returns.
    ///
    /// - Returns: A handle to the session, or to the existing session with the same deduplication key.
    /// - Throws: The errors of ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    @discardableResult
    public nonisolated func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> TransferSession {
        let sessions = try await enqueue([request], at: index, held: held)
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "No session was enqueued.") }
        return session
    }

    /// Adds sessions in the given order, in one transaction: all or none. The sessions are durable when the call returns.
    ///
    /// If this process has no transport for an account, the queue adds the sessions of the account, and logs a warning. These sessions wait
    /// until the app or the user acts.
    ///
    /// The local path of an item must refer to a readable regular file or a readable folder. The queue checks this without opening the file or
    /// folder. The queue reads the contents of a folder when the folder's session first runs. The queue writes in-memory data to disk before the call
    /// returns. The destination folder of a download must exist and be writable.
    ///
    /// The account's transports validate each session, if they are registered in this process (``/TransferCore/SessionValidating``). The call
    /// rejects a session with an invalid option, such as a forbidden header, even if only the transport of a fallback endpoint rejects the
    /// option. The call accepts an unsupported option, such as a checksum for an upload to a plain HTTP server, if another endpoint of the account
    /// supports it.
    ///
    /// A request that duplicates an existing session (``SessionRequest/deduplicationKey``) succeeds even if the transports would reject the
    /// request. Unless it contains streams or in-memory data, such a request also succeeds if its local files are missing, or if the
    /// destinations of its downloads exist.
    ///
    /// The call rejects two uploads with the same remote name if the second upload would replace the first one, fail, or be skipped
    /// (``/TransferCore/FileNaming``). This applies to plain HTTP, unless the endpoint contains the placeholder `{transfer}`, and to SFTP,
    /// unless the overwrite policy is rename. The call accepts the same local file twice. It does not compare the contents of
    /// folders. It rejects two folders with the same remote name if a file of one folder could replace a file of the other folder, or would
    /// be skipped. Otherwise, the folders merge.
    ///
    /// - Parameters:
    ///   - requests: The sessions, in order.
    ///   - index: The index of the first session, at most the number of sessions; nil for the end of the queue.
    ///   - held: Whether the sessions are held until they are released.
    /// - Returns: For each request, a handle to the session, or to the existing session with the same deduplication key.
    /// - Throws: ``QueueError``, including the codes `noSuchAccount`, `invalidRequest`, `unreadableItems`, `fileExists`, `storageUnavailable`
    ///   and `indexOutOfRange`; for an invalid dependency, `noSuchSession` or `impossibleOrder`; `CancellationError` if the task is cancelled while a
    ///   file is copied (``TransferItem/keepsCopy``). After an error, nothing is enqueued.
    @discardableResult
    public nonisolated func enqueue(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws
        -> [TransferSession]
    {
        try await add(requests, at: index, expecting: nil, isHeld: held)
    }

    /// Same as ``enqueue(_:at:held:)-([SessionRequest],_,_)``, but returns IDs instead of handles.
    @discardableResult
    public nonisolated func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        try await enqueue(requests, at: index, held: held).map(\.id)
    }

    /// Same as ``add(_:at:held:)``, but throws if the order has changed since the caller read it.
    ///
    /// - Throws: The errors of ``enqueue(_:at:held:)-([SessionRequest],_,_)``, and ``QueueError`` with the code `staleOrder`.
    @discardableResult
    public nonisolated func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, held: Bool
    ) async throws -> [SessionID] {
        try await add(requests, at: index, expecting: orderRevision, isHeld: held).map(\.id)
    }

    private nonisolated func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, isHeld: Bool
    ) async throws -> [TransferSession] {
        try await add(requests) { .enqueue($0, at: index, expecting: orderRevision, isHeld: isHeld) }
    }

    private nonisolated func add(
        _ requests: [SessionRequest], by command: ([SessionDraft]) -> Command
    ) async throws -> [TransferSession] {
        var drafts = try await draft(filesIn: requests.lazy.compactMap(\.localFolder).first) {
            try await store.drafts(of: requests)
        }
        let result: InputResult
        do throws(QueueError) {
            try await check(requests, &drafts)
            for (request, draft) in zip(requests, drafts) { try register(request.items, draft.items, of: draft.id) }
            result = try await mailbox.send(.command(command(drafts)))
        } catch {
            await discard(drafts.flatMap(\.items))
            throw error
        }
        let added = Set(result.sessions)
        await discard(drafts.filter { !added.contains($0.id) }.flatMap(\.items))
        return result.sessions.map { TransferSession(id: $0, queue: self) }
    }

    /// Stores a session as a draft. A draft is not in the order of the queue, never starts, and survives restarts of the process. The app can
    /// change the draft with ``ControllableQueue/update(_:_:)`` and ``addItems(_:to:)``, and later enqueue it with
    /// ``ControllableQueue/enqueue(draft:to:held:)``.
    ///
    /// The queue checks the request as it does for ``enqueue(_:at:held:)-([SessionRequest],_,_)``. A deduplication key has no effect
    /// until the draft is enqueued. To list drafts, use ``sessions(in:)`` with `.state(.draft)`.
    ///
    /// - Returns: A handle to the draft.
    /// - Throws: The errors of ``enqueue(_:at:held:)-([SessionRequest],_,_)``, and ``QueueError`` with the code `invalidRequest` for a request with
    ///   ``SessionRequest/deduplicatesCompleted``.
    @discardableResult
    public nonisolated func save(draft request: SessionRequest) async throws -> TransferSession {
        try await saveDrafts([request])
        return TransferSession(id: request.id, queue: self)
    }

    /// Stores sessions as drafts, in one transaction; see ``save(draft:)``.
    ///
    /// - Returns: The IDs of the drafts, in the order of the requests.
    /// - Throws: The errors of ``save(draft:)``. After an error, no draft is stored.
    @discardableResult
    public nonisolated func saveDrafts(_ requests: [SessionRequest]) async throws -> [SessionID] {
        guard !requests.contains(where: \.deduplicatesCompleted) else {
            throw QueueError(.invalidRequest, "A draft can't have deduplicatesCompleted. Set only its deduplicationKey.")
        }
        return try await add(requests) { .saveDrafts($0) }.map(\.id)
    }

    /// Same as ``enqueue(_:at:held:)-(SessionRequest,_,_)``, but throws if the order has changed since the caller chose the index.
    ///
    /// - Parameters:
    ///   - request: The session.
    ///   - index: The index of the session, at most the number of sessions.
    ///   - orderRevision: The ``QueueStatus/orderRevision`` at which the index was chosen; nil to accept any order.
    ///   - held: Whether the session is held until it is released.
    /// - Throws: The errors of ``enqueue(_:at:held:)-(SessionRequest,_,_)``, and ``QueueError`` with the code `staleOrder` if the order has changed.
    @discardableResult
    public nonisolated func enqueue(
        _ request: SessionRequest, at index: Int, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> TransferSession {
        let sessions = try await enqueue([request], at: index, expecting: orderRevision, held: held)
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "No session was enqueued.") }
        return session
    }

    /// Same as ``enqueue(_:at:held:)-([SessionRequest],_,_)``, but throws if the order has changed since the caller chose the index.
    ///
    /// - Parameters:
    ///   - requests: The sessions, in order.
    ///   - index: The index of the first session, at most the number of sessions.
    ///   - orderRevision: The ``QueueStatus/orderRevision`` at which the index was chosen; nil to accept any order.
    ///   - held: Whether the sessions are held until they are released.
    /// - Throws: The errors of ``enqueue(_:at:held:)-([SessionRequest],_,_)``, and ``QueueError`` with the code `staleOrder` if the order has
    ///   changed.
    @discardableResult
    public nonisolated func enqueue(
        _ requests: [SessionRequest], at index: Int, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> [TransferSession] {
        try await add(requests, at: index, expecting: orderRevision, isHeld: held)
    }
}
