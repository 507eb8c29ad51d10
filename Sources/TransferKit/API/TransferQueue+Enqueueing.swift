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

    /// Adds sessions in the given order, in one transaction: all or none. They are durable when the call returns.
    ///
    /// If this process has no transport for an account, its sessions are added with a warning in the log. They wait until the app or the user
    /// acts.
    ///
    /// The queue inspects the sources of items without opening them: each must be a readable regular file or folder. It reads folders when
    /// their session first runs. In-memory data is on disk when the call returns. The folder of a download must exist and be writable.
    ///
    /// The account's transports validate each session, if they are registered in this process (``/TransferCore/SessionValidating``). A session
    /// with an invalid option, such as a forbidden header, is rejected even if only the transport of a fallback endpoint rejects the option. A
    /// session with an option that some endpoints do not support, such as a checksum for an upload to a plain HTTP server, is accepted if
    /// another endpoint supports the option.
    ///
    /// A request that duplicates an existing session (``SessionRequest/deduplicationKey``) is not rejected by the transports. It is
    /// accepted even if its sources are missing or the destinations of its downloads exist, unless it contains streams or in-memory data.
    ///
    /// The call rejects two uploads with the same remote name if one would replace the other, would fail, or would be skipped
    /// (``/TransferCore/FileNaming``). This applies to plain HTTP, unless the endpoint uses `{transfer}`, and to SFTP, unless the overwrite
    /// policy is rename. The same local file twice is not a conflict. Folders with the same name merge, and their contents are not
    /// compared.
    ///
    /// - Parameters:
    ///   - index: The index of the first session, at most the number of sessions; nil for the end of the queue.
    ///   - held: Whether the sessions are held until they are released.
    /// - Returns: For each request, a handle to the session, or to the existing session with the same deduplication key.
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, `invalidRequest`, `unreadableItems`, `fileExists`, `storageUnavailable`
    ///   or `indexOutOfRange`; for an invalid dependency, `noSuchSession` or `impossibleOrder`. After an error, nothing is enqueued.
    @discardableResult
    public nonisolated func enqueue(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws
        -> [TransferSession]
    {
        try await add(requests, at: index, expecting: nil, isHeld: held)
    }

    /// Same as ``enqueue(_:at:held:)-([SessionRequest],_,_)``, but returns IDs.
    @discardableResult
    public nonisolated func add(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws -> [SessionID] {
        try await enqueue(requests, at: index, held: held).map(\.id)
    }

    private nonisolated func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, isHeld: Bool
    ) async throws -> [TransferSession] {
        var drafts = try await store.drafts(of: requests)
        let answer: Answer
        do throws(QueueError) {
            try await check(requests, &drafts)
            for (request, draft) in zip(requests, drafts) { try register(request.items, draft.items, of: draft.id) }
            answer = try await mailbox.send(.command(.enqueue(drafts, at: index, expecting: orderRevision, isHeld: isHeld)))
        } catch {
            await discard(drafts.flatMap(\.items))
            throw error
        }
        let added = Set(answer.sessions)
        await discard(drafts.filter { !added.contains($0.id) }.flatMap(\.items))
        return answer.sessions.map { TransferSession(id: $0, queue: self) }
    }

    /// Same as ``enqueue(_:at:held:)-(SessionRequest,_,_)``, but throws if the order has changed since the caller chose the index.
    ///
    /// - Parameter orderRevision: The ``QueueStatus/orderRevision`` at which the index was chosen; nil to accept any order.
    /// - Throws: The errors of that method, and ``QueueError`` with the code `staleOrder` if the order has changed.
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
    /// - Parameter orderRevision: The ``QueueStatus/orderRevision`` at which the index was chosen; nil to accept any order.
    /// - Throws: The errors of that method, and ``QueueError`` with the code `staleOrder` if the order has changed.
    @discardableResult
    public nonisolated func enqueue(
        _ requests: [SessionRequest], at index: Int, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> [TransferSession] {
        try await add(requests, at: index, expecting: orderRevision, isHeld: held)
    }

    /// Adds items at the end of a session. A running session transfers them before it completes.
    ///
    /// The call rejects remote names that conflict with each other or with existing items of the session, as does
    /// ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    ///
    /// - Throws: ``QueueError``, including the codes `noSuchSession`, `invalidTransition` if the session ended, `invalidRequest`,
    ///   `unreadableItems` and `fileExists`. After an error, nothing is added.
    public nonisolated func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        let target = try await target(of: session)
        let (id, options) = (target.status.id, target.options)
        let folder = target.folder.map { DownloadFolder(path: $0, overwrite: options.overwrite) }
        try await check(
            items, of: SessionRequirements(account: target.status.account, direction: target.status.direction, options: options))
        let drafts = try await store.drafts(of: items, downloadingTo: folder)
        do {
            try await checkNames(of: drafts, addedTo: target)
            try register(items, drafts, of: id)
            try await mailbox.send(.command(.addItems(.id(id), drafts)))
        } catch {
            await discard(drafts)
            throw error
        }
    }

    private nonisolated func register(_ items: [TransferItem], _ drafts: [ItemDraft], of session: SessionID) throws(QueueError) {
        try streams.add(items, drafts, of: session, in: store.spool, clock: configuration.clock)
    }

    /// Releases the resources of items that were not added.
    private nonisolated func discard(_ drafts: [ItemDraft]) async {
        streams.withdraw(drafts)
        await store.discardBlobs(of: drafts)
    }

    /// Reads a session from the store by its reference.
    func target(of session: SessionReference) async throws -> SessionRecord {
        await settle()
        guard !mailbox.isClosed else { throw QueueError(.shutDown, "The queue is shut down.") }
        let key = try scheduler.resolve(session)
        guard let record = try await store.sessions([key]).first else {
            throw QueueError(.noSuchSession, "The session no longer exists.")
        }
        return record
    }
}
