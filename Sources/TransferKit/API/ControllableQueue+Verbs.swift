/// The operations on sessions. A change is durable when its call returns. No call waits for the network.
///
/// Each active session uses a *slot*; the number of slots is the maximum number of active sessions.
///
/// A call throws ``QueueError`` if the session does not exist (`noSuchSession`), its index is invalid or outdated (`indexOutOfRange`,
/// `staleOrder`), or its state does not permit the operation (`invalidTransition`). After such an error, nothing is changed. For groups,
/// use ``apply(_:to:)-(_,SessionGroup)``. That method changes at most 10,000 sessions in one transaction, and removes at most 5,000.
extension ControllableQueue {
    /// Runs a session now, regardless of the order, a hold, a start time, a dependency or a backoff.
    ///
    /// If the session lacks only a slot, it gets the slot of another session. The other session gets the slot back when this session
    /// releases it. The queue probes unavailable endpoints immediately. If the session still can't start, for example because its account
    /// is blocked, the session starts before all other sessions as soon as it can. The call removes the session's start time and dependency.
    ///
    /// A paused session is resumed, as by ``resume(_:)``. A failed or cancelled session retries its unfinished items. A running session
    /// continues, and its waiting files skip their delays. If its run then fails before more bytes are transferred, the session starts a new run
    /// immediately. A stopped queue stays stopped. After ``ControllableQueue/start()``, the session starts before all others.
    ///
    /// - Parameters:
    ///   - session: The session: its ID or index.
    ///   - again: Whether to transfer a completed session again. If false, the call throws `alreadyCompleted` for a completed session.
    /// - Throws: ``QueueError``, including the code `duplicate` if another session with the same deduplication key is not completed.
    public func run(_ session: some SessionReferenceConvertible, again: Bool = false) async throws {
        try await apply(.run(again: again), to: session.reference)
    }

    /// Makes a waiting session the next to start, without interrupting other sessions. Sessions to which ``run(_:again:)`` or ``resume(_:)`` was
    /// applied still start first, and a strict queue still follows its order.
    public func runNext(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.runNext, to: session.reference)
    }

    /// Pauses a running session, which keeps its slot and its checkpoints. Holds a waiting session instead.
    ///
    /// - Returns: The new state of the session: paused or held.
    @discardableResult
    public func pause(_ session: some SessionReferenceConvertible) async throws -> SessionState {
        try await apply(.pause, to: session.reference) ?? .paused
    }

    /// Resumes a paused session in the slot that it kept. If the session can't continue immediately, the session releases the slot, and
    /// starts before all other sessions as soon as it can. Releases a held session, like ``release(_:)``.
    public func resume(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.resume, to: session.reference)
    }

    /// Holds a session. The session keeps its index, releases its slot, and does not start until it is released or run.
    public func hold(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.hold, to: session.reference)
    }

    /// Releases a held session, which then waits for its turn again.
    public func release(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.release, to: session.reference)
    }

    /// Interrupts a running session, releases the slot of a paused session, or delays a waiting session, so that another session can start. The
    /// yielding session starts again automatically after another session has started, or after 5 s if no other session can start.
    public func yield(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.yield, to: session.reference)
    }

    /// Cancels a session. The session keeps its index, and does not run again until ``retry(_:)`` or ``run(_:again:)`` is called.
    ///
    /// Unfinished uploads and the part files of downloads stay by default, so that a cancellation can be undone: after ``retry(_:)`` or
    /// ``run(_:again:)``, the files resume from their checkpoints. ``remove(_:isForced:)`` removes this content.
    ///
    /// - Parameters:
    ///   - session: The session: its ID or index.
    ///   - discarding: Whether to remove unfinished uploads and the part files of downloads as soon as possible. After a retry, the files
    ///     then restart from byte 0.
    public func cancel(_ session: some SessionReferenceConvertible, discarding: Bool = false) async throws {
        try await apply(.cancel(discarding: discarding), to: session.reference)
    }

    /// Retries the unfinished items of a failed or cancelled session. The session keeps its index and waits for its turn.
    ///
    /// - Throws: ``QueueError``, including the code `duplicate` if another session with the same deduplication key is not completed.
    public func retry(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.retry, to: session.reference)
    }

    /// Moves a session to another position in the order. Interrupts no session.
    ///
    /// - Throws: ``QueueError``, including the code `indexOutOfRange` for an invalid destination, or `impossibleOrder` if a session of a strict
    ///   queue would depend on a later session after the move.
    public func move(_ session: some SessionReferenceConvertible, to destination: MoveDestination) async throws {
        try await apply(.move(to: destination), to: session.reference)
    }

    /// Adds a draft to the order of the queue. The session then behaves like a session that was just enqueued.
    ///
    /// ```swift
    /// let draft = try await queue.save(draft: request)
    /// try await queue.enqueue(draft: draft, to: .front)
    /// ```
    ///
    /// The account's transports validate the session again, because the account may have changed since the draft was saved. The local files are
    /// not checked again.
    ///
    /// - Parameters:
    ///   - session: The draft: its ID.
    ///   - destination: The position of the session; by default the end. An index can be from 0 to the number of sessions.
    ///   - held: Whether the session is held until it is released.
    /// - Throws: ``QueueError``, including the codes `invalidTransition` if the session is not a draft, `duplicate`, `indexOutOfRange`,
    ///   `staleOrder`, `invalidRequest`, and, in a strict queue, `impossibleOrder`.
    public func enqueue(
        draft session: some SessionReferenceConvertible, to destination: MoveDestination = .end, held: Bool = false
    ) async throws {
        try await apply(.enqueue(to: destination, isHeld: held), to: session.reference)
    }

    /// Changes all the given properties of a session that has not completed, or none of them, in one transaction. The event
    /// ``QueueEvent/Kind/updated(_:)`` reports the change.
    ///
    /// Some properties, such as the account, can change only until the session's first bytes are transferred; see ``SessionUpdate``.
    ///
    /// - Throws: ``QueueError``, including the code `invalidRequest` for an invalid value, or for options that no endpoint of the account
    ///   supports; `invalidTransition` if the session's state does not permit one of the changes; `noSuchAccount`; for a dependency,
    ///   `noSuchSession` or `impossibleOrder`.
    public func update(_ session: some SessionReferenceConvertible, _ update: SessionUpdate) async throws {
        try await apply(.update(update), to: session.reference)
    }

    /// Removes a session in any state. A running session is interrupted.
    ///
    /// When the call returns, the session is no longer in the queue. The queue later removes unfinished uploads and the part files of
    /// downloads. If the session has more than 10,000 files, the queue also deletes their rows from its database later. Complete files, local
    /// or remote, are never changed.
    ///
    /// - Parameters:
    ///   - session: The session: its ID or index.
    ///   - isForced: Whether to remove the session even if other sessions depend on it. Those sessions then lose the dependency.
    /// - Throws: ``QueueError``, including the code `hasDependents` if other sessions depend on the session and `isForced` is false.
    public func remove(_ session: some SessionReferenceConvertible, isForced: Bool = false) async throws {
        try await apply(.remove(isForced: isForced), to: session.reference)
    }
}

extension ControllableQueue {
    /// Applies an operation to several sessions, and finds the reason for each session that the operation could not change.
    ///
    /// - Returns: `changed`: the sessions that the operation changed, and those already at the destination of a move, in the given order.
    ///   `refused`: the other sessions, each with the reason.
    /// - Throws: The error of the whole operation, after which no session is changed; or an error that means that the queue can't be reached.
    package func applyFindingRefusals(
        _ operation: SessionOperation, to ids: [SessionID]
    ) async throws -> (changed: [SessionID], refused: [(id: SessionID, error: QueueError)]) {
        let changed = Set(try await apply(operation, to: SessionGroup.sessions(ids)))
        var skipped = ids.filter { !changed.contains($0) }
        var single = operation
        switch operation {
        case .move where !skipped.isEmpty:
            // The move skips drafts, and sessions that are already at the destination. Repeat the move only for the drafts, because a second
            // move would take the other sessions away from the destination.
            let drafts = Set(try await sessions(in: .sessions(ids)).filter { $0.state == .draft }.map(\.id))
            skipped = skipped.filter(drafts.contains)
        case .enqueue(_, let isHeld):
            // The order has changed since the first call, so the original destination could fail for a different reason.
            single = .enqueue(to: .end, isHeld: isHeld)
        default: break
        }
        var refused: [(id: SessionID, error: QueueError)] = []
        for id in skipped {
            // An operation on a group silently skips sessions whose state forbids it. The same operation on one session throws the reason.
            do {
                try await apply(single, to: .id(id))
            } catch let error as QueueError where !unreachableQueueCodes.contains(error.code) {
                refused.append((id, error))
            }
        }
        return (ids.filter { id in !refused.contains { $0.id == id } }, refused)
    }
}

// The module `TransferControl` declares the first two codes.
private let unreachableQueueCodes = [QueueError.Code(rawValue: "ownerUnreachable"), QueueError.Code(rawValue: "ownerLost"), .shutDown]
