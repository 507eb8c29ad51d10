/// The operations on sessions. Each call is durable when it returns, and none waits for the network.
///
/// A call for one session throws ``QueueError`` with the code `noSuchSession`, `indexOutOfRange`, `staleOrder`, or, if the session's state
/// does not permit the operation, `invalidTransition`; then nothing is changed. A call for a group changes the sessions whose state permits
/// the operation, and returns them. It processes large groups in transactions of 10,000 sessions.
extension ControllableQueue {
    /// Runs a session now, regardless of the order, a hold, a start time, a dependency or a backoff. If the account is blocked or its
    /// transport is missing, the session is next instead.
    ///
    /// Probes unavailable endpoints again at once. If no slot is free, one other session is interrupted and returns when this one is done.
    /// On a paused session: same as ``resume(_:)-(SessionReferenceConvertible)``. On a running session: if its run has to
    /// wait before it moves more bytes, the session is run again at once. On a stopped queue: the session is next, and the queue stays stopped.
    ///
    /// - Parameter again: Whether to transfer a completed session again; if false, that throws `alreadyCompleted`.
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public func run(_ session: some SessionReferenceConvertible, again: Bool = false) async throws {
        try await apply(.run(again: again), to: session.reference)
    }

    /// Makes a session the next one to start, without interrupting others.
    public func runNext(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.runNext, to: session.reference)
    }

    /// Interrupts a running session at its next safe point; it keeps its slot. A waiting session is held instead.
    ///
    /// - Returns: The new state of the session: paused or held.
    @discardableResult
    public func pause(_ session: some SessionReferenceConvertible) async throws -> SessionState {
        try await apply(.pause, to: session.reference) ?? .paused
    }

    /// Resumes a paused session with the slot that it kept.
    public func resume(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.resume, to: session.reference)
    }

    /// Holds a session: it keeps its index, gives up its slot, and does not start until ``release(_:)-(SessionReferenceConvertible)``.
    public func hold(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.hold, to: session.reference)
    }

    /// Releases a held session, which then waits for its turn again.
    public func release(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.release, to: session.reference)
    }

    /// Lets a session yield its slot to another one. It resumes automatically once another session was activated, or after 5 s if there is
    /// none.
    public func yield(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.yield, to: session.reference)
    }

    /// Cancels a session. It keeps its index and does not run again unless it is retried.
    ///
    /// - Parameter keepsPartial: Whether to keep incomplete remote content; if false, it is removed as soon as possible.
    public func cancel(_ session: some SessionReferenceConvertible, keepsPartial: Bool = false) async throws {
        try await apply(.cancel(keepsPartial: keepsPartial), to: session.reference)
    }

    /// Lets a failed or cancelled session wait again at its index, for the items that are not done.
    ///
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public func retry(_ session: some SessionReferenceConvertible) async throws {
        try await apply(.retry, to: session.reference)
    }

    /// Moves a session to another place in the order. Interrupts no session.
    ///
    /// - Throws: ``QueueError`` with the code `indexOutOfRange` if there is no such index, or, in a strict queue, `impossibleOrder`.
    public func move(_ session: some SessionReferenceConvertible, to destination: MoveDestination) async throws {
        try await apply(.move(to: destination), to: session.reference)
    }

    /// Changes the given properties of a session that has not ended.
    ///
    /// - Throws: ``QueueError``, also with the code `invalidRequest` for a verification that the account's endpoints don't support.
    public func update(_ session: some SessionReferenceConvertible, _ update: SessionUpdate) async throws {
        try await apply(.update(update), to: session.reference)
    }

    /// Removes a session in any state. A running session is interrupted.
    ///
    /// The session, the records of its files, and its checkpoints are deleted when the call returns. Local sources and complete remote
    /// files are never changed; incomplete remote content is removed later.
    ///
    /// - Parameter isForced: Whether to remove the session even if others depend on it, which then lose that condition; if false,
    ///   dependents cause an error.
    /// - Throws: ``QueueError``, also with the code `hasDependents`.
    public func remove(_ session: some SessionReferenceConvertible, isForced: Bool = false) async throws {
        try await apply(.remove(isForced: isForced), to: session.reference)
    }

    // MARK: Groups

    /// Same as ``run(_:again:)-(SessionReferenceConvertible,_)``, for each session of a group, in the order of the queue.
    @discardableResult
    public func run(_ group: SessionGroup, again: Bool = false) async throws -> [SessionID] {
        try await apply(.run(again: again), to: group)
    }

    /// Same as ``runNext(_:)-(SessionReferenceConvertible)``, for each session of a group; they keep their order.
    @discardableResult
    public func runNext(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.runNext, to: group) }

    /// Same as ``pause(_:)-(SessionReferenceConvertible)``, for each session of a group. The result includes waiting sessions that are now held.
    @discardableResult
    public func pause(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.pause, to: group) }

    /// Same as ``resume(_:)-(SessionReferenceConvertible)``, for each session of a group.
    @discardableResult
    public func resume(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.resume, to: group) }

    /// Same as ``hold(_:)-(SessionReferenceConvertible)``, for each session of a group.
    @discardableResult
    public func hold(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.hold, to: group) }

    /// Same as ``release(_:)-(SessionReferenceConvertible)``, for each session of a group.
    @discardableResult
    public func release(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.release, to: group) }

    /// Same as ``yield(_:)-(SessionReferenceConvertible)``, for each session of a group.
    @discardableResult
    public func yield(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.yield, to: group) }

    /// Same as ``cancel(_:keepsPartial:)-(SessionReferenceConvertible,_)``, for each session of a group.
    @discardableResult
    public func cancel(_ group: SessionGroup, keepsPartial: Bool = false) async throws -> [SessionID] {
        try await apply(.cancel(keepsPartial: keepsPartial), to: group)
    }

    /// Same as ``retry(_:)-(SessionReferenceConvertible)``, for each session of a group.
    @discardableResult
    public func retry(_ group: SessionGroup) async throws -> [SessionID] { try await apply(.retry, to: group) }

    /// Lets all failed sessions wait again at their indices.
    @discardableResult
    public func retryAllFailed() async throws -> [SessionID] { try await retry(.failed) }

    /// Same as ``move(_:to:)-(SessionReferenceConvertible,_)``: moves a group to one place, contiguously and in its order.
    @discardableResult
    public func move(_ group: SessionGroup, to destination: MoveDestination) async throws -> [SessionID] {
        try await apply(.move(to: destination), to: group)
    }

    /// Same as ``update(_:_:)-(SessionReferenceConvertible,_)``, for each session of a group. A verification that one of them does not support
    /// changes none.
    @discardableResult
    public func update(_ group: SessionGroup, _ update: SessionUpdate) async throws -> [SessionID] {
        try await apply(.update(update), to: group)
    }

    /// Same as ``remove(_:isForced:)-(SessionReferenceConvertible,_)``, for a group: all or none of up to 10,000 sessions.
    @discardableResult
    public func remove(_ group: SessionGroup, isForced: Bool = false) async throws -> [SessionID] {
        try await apply(.remove(isForced: isForced), to: group)
    }
}
