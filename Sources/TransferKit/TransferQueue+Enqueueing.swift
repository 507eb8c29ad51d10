import TransferCore

extension TransferQueue {
    /// Adds a session. It is durable when the call returns.
    ///
    /// - Returns: A handle of the session; of the one that exists already if the request's deduplication key says so.
    /// - Throws: As ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    @discardableResult
    public nonisolated func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> TransferSession {
        let sessions = try await enqueue([request], at: index, held: held)
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "Nothing was enqueued.") }
        return session
    }

    /// Adds any number of sessions, in this order, in one transaction: all or none. They are durable when the call returns.
    ///
    /// Sessions whose account no transport of this process serves are added, with a warning in the log, and wait for a person.
    ///
    /// What the items name is looked at, not opened: each must be a readable regular file or folder. Folders are read when their session
    /// first runs. Bytes in memory are on disk when the call returns. The folder of a download must exist and be writable.
    ///
    /// What the sessions want is looked at by the transports of their account, as far as this process has them (``/TransferCore/SessionValidating``).
    /// What one of them finds to be wrong in itself, as a header that no request may have, refuses the session, also if only a fallback says
    /// so. What is merely not had at one endpoint, as a checksum of an upload at a plain HTTP server, is left to the account's others, and refuses
    /// the session if none of them can do it. None of them is asked for a session that exists already, by its deduplication key; what its items name is
    /// looked at all the same.
    ///
    /// Two uploads of one call that have one remote name are refused where one would replace the other, or be refused or left out
    /// (``/TransferCore/FileNaming``): at an SFTP server without the overwrite policy rename, or by a plain HTTP `PUT`. A file that is named
    /// twice is no clash, and folders merge. What is in folders is not looked at.
    ///
    /// - Parameters:
    ///   - index: The index of the first one, at most the number of sessions; nil for the end of the queue.
    ///   - held: Whether they are set aside until they are released.
    /// - Returns: A handle of each session; of one that exists already for a request whose deduplication key says so.
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, `invalidRequest`, `unreadableItems`, `fileExists`, `storageUnavailable`,
    ///   `indexOutOfRange`, `noSuchSession` or `impossibleOrder` for dependencies; nothing is enqueued then.
    @discardableResult
    public nonisolated func enqueue(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws
        -> [TransferSession]
    {
        try await add(requests, at: index, expecting: nil, isHeld: held)
    }

    private nonisolated func add(
        _ requests: [SessionRequest], at index: Int?, expecting orderRevision: UInt64?, isHeld: Bool
    ) async throws -> [TransferSession] {
        var drafts = try await store.drafts(of: requests)
        let answer: Answer
        do throws(QueueError) {
            try await check(requests, &drafts)
            for (request, draft) in zip(requests, drafts) { try take(request.items, draft.items, of: draft.id) }
            answer = try await mailbox.send(.command(.enqueue(drafts, at: index, expecting: orderRevision, isHeld: isHeld)))
        } catch {
            await giveUp(drafts.flatMap(\.items))
            throw error
        }
        let added = Set(answer.sessions)
        await giveUp(drafts.filter { !added.contains($0.id) }.flatMap(\.items))
        return answer.sessions.map { TransferSession(id: $0, queue: self) }
    }

    /// As ``enqueue(_:at:held:)-(SessionRequest,_,_)``, at an index of an order that was read before.
    ///
    /// - Parameter orderRevision: The ``QueueStatus/orderRevision`` that the index was read at; nil if that does not matter.
    /// - Throws: Also ``QueueError`` with the code `staleOrder` if the order changed since.
    @discardableResult
    public nonisolated func enqueue(
        _ request: SessionRequest, at index: Int, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> TransferSession {
        let sessions = try await enqueue([request], at: index, expecting: orderRevision, held: held)
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "Nothing was enqueued.") }
        return session
    }

    /// As ``enqueue(_:at:held:)-([SessionRequest],_,_)``, at an index of an order that was read before.
    ///
    /// - Parameter orderRevision: The ``QueueStatus/orderRevision`` that the index was read at; nil if that does not matter.
    /// - Throws: Also ``QueueError`` with the code `staleOrder` if the order changed since.
    @discardableResult
    public nonisolated func enqueue(
        _ requests: [SessionRequest], at index: Int, expecting orderRevision: UInt64?, held: Bool = false
    ) async throws -> [TransferSession] {
        try await add(requests, at: index, expecting: orderRevision, isHeld: held)
    }

    /// Adds items behind all that a session has. A session that runs goes on with them in the same activation.
    ///
    /// A remote name that another item of the session has is refused as by ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`, `invalidTransition` if the session ended, `invalidRequest`, `unreadableItems`
    ///   or `fileExists`; nothing is added then.
    public nonisolated func addItems(_ items: [TransferItem], to session: SessionReference) async throws {
        let target = try await target(of: session)
        let (id, options) = (target.status.id, target.options)
        let folder = target.folder.map { DownloadFolder(path: $0, overwrite: options.overwrite) }
        try await check(items, of: Wish(account: target.status.account, direction: target.status.direction, options: options))
        let drafts = try await store.drafts(of: items, downloadingTo: folder)
        do {
            try await checkNames(of: drafts, addedTo: target)
            try take(items, drafts, of: id)
            try await mailbox.send(.command(.addItems(.id(id), drafts)))
        } catch {
            await giveUp(drafts)
            throw error
        }
    }

    private nonisolated func take(_ items: [TransferItem], _ drafts: [ItemDraft], of session: SessionID) throws(QueueError) {
        try streams.add(items, drafts, of: session, in: store.spool, clock: configuration.clock)
    }

    /// Items were not added after all.
    private nonisolated func giveUp(_ drafts: [ItemDraft]) async {
        streams.withdraw(drafts)
        await store.discardBlobs(of: drafts)
    }

    /// The session that a reference means, as it is stored.
    func target(of session: SessionReference) async throws -> SessionRecord {
        await settle()
        guard !mailbox.isClosed else { throw QueueError(.shutDown, "The queue was shut down.") }
        let key = try scheduler.resolve(session)
        guard let record = try await store.sessions([key]).first else {
            throw QueueError(.noSuchSession, "There is no such session any more.")
        }
        return record
    }
}
