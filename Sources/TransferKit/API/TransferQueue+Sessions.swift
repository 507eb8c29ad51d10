/// Operations on sessions. Each call is durable when it returns, and none waits for the network.
///
/// A call for one session throws ``QueueError`` with the code `noSuchSession`, `indexOutOfRange`, `staleOrder`, or, if the session's state
/// does not permit the operation, `invalidTransition`; then nothing is changed. A call for a group changes the sessions whose state permits
/// the operation, and returns them. It processes large groups in transactions of 10,000 sessions.
extension TransferQueue {
    /// Runs a session now, regardless of the order, a hold, a start time, a dependency or a backoff. If the account is blocked or its
    /// transport is missing, the session is next instead.
    ///
    /// Probes unavailable endpoints again at once. If no slot is free, one other session is interrupted and returns when this one is done.
    /// On a paused session: same as ``resume(_:)-(SessionReference)``. On a running session: if its run has to wait before it moves more
    /// bytes, the session is run again at once. On a stopped queue: the session is next, and the queue stays stopped.
    ///
    /// - Parameter again: Whether to transfer a completed session again; if false, that throws `alreadyCompleted`.
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public nonisolated func run(_ session: SessionReference, again: Bool = false) async throws {
        try await perform(.run(again: again), session)
    }

    /// Makes a session the next one that starts, without an interruption of others.
    public nonisolated func runNext(_ session: SessionReference) async throws {
        try await perform(.runNext, session)
    }

    /// Interrupts a running session at its next safe point; it keeps its slot. A waiting session is held instead.
    ///
    /// - Returns: The new state of the session: paused or held.
    @discardableResult
    public nonisolated func pause(_ session: SessionReference) async throws -> SessionState {
        try await perform(.pause, session).held.isEmpty ? .paused : .held
    }

    /// Resumes a paused session with the slot that it kept.
    public nonisolated func resume(_ session: SessionReference) async throws {
        try await perform(.resume, session)
    }

    /// Holds a session: it keeps its index, gives up its slot, and does not start until ``release(_:)-(SessionReference)``.
    public nonisolated func hold(_ session: SessionReference) async throws {
        try await perform(.hold, session)
    }

    /// Releases a held session, which then waits for its turn again.
    public nonisolated func release(_ session: SessionReference) async throws {
        try await perform(.release, session)
    }

    /// Gives a session's slot to another session. The stopped session resumes automatically once another one was activated, or after 5 s if
    /// there is none.
    public nonisolated func stop(_ session: SessionReference) async throws {
        try await perform(.stop, session)
    }

    /// Cancels a session. It keeps its index and does not run again unless it is retried.
    ///
    /// - Parameter keepsPartial: Whether to keep incomplete remote content; if false, it is removed as soon as possible.
    public nonisolated func cancel(_ session: SessionReference, keepsPartial: Bool = false) async throws {
        try await perform(.cancel(keepsPartial: keepsPartial), session)
    }

    /// Lets a failed or cancelled session wait again at its index, for the items that are not done.
    ///
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public nonisolated func retry(_ session: SessionReference) async throws {
        try await perform(.retry, session)
    }

    /// Moves a session to another place in the order. Interrupts no session.
    ///
    /// - Throws: ``QueueError`` with the code `indexOutOfRange` if there is no such index, or, in a strict queue, `impossibleOrder`.
    public nonisolated func move(_ session: SessionReference, to destination: MoveDestination) async throws {
        try await perform(.move(destination), session)
    }

    /// Changes the given properties of a session that has not ended.
    ///
    /// - Throws: ``QueueError``, also with the code `invalidRequest` for a verification that the account's endpoints don't support.
    public nonisolated func update(_ session: SessionReference, _ update: SessionUpdate) async throws {
        try update.validate()
        if let verification = update.verification { try await check(verification, of: target(of: session)) }
        try await perform(.update(update), session)
    }

    /// Removes a session in any state. A running session is interrupted.
    ///
    /// The session, the records of its files, and its checkpoints are deleted when the call returns. Local sources and complete remote
    /// files are never changed; incomplete remote content is removed later.
    ///
    /// - Parameter isForced: Whether to remove the session even if others depend on it, which then lose that condition; if false,
    ///   dependents cause an error.
    /// - Throws: ``QueueError``, also with the code `hasDependents`.
    public nonisolated func remove(_ session: SessionReference, isForced: Bool = false) async throws {
        try await perform(.remove(isForced: isForced), session)
    }

    // MARK: Groups

    /// Same as ``run(_:again:)``, for each session of a group, in the order of the queue.
    @discardableResult
    public nonisolated func run(_ group: SessionGroup, again: Bool = false) async throws -> [SessionID] {
        try await perform(.run(again: again), group)
    }

    /// Same as ``runNext(_:)-(SessionReference)``, for each session of a group; they keep their order.
    @discardableResult
    public nonisolated func runNext(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.runNext, group)
    }

    /// Same as ``pause(_:)-(SessionReference)``, for each session of a group. The result includes waiting sessions that are now held.
    @discardableResult
    public nonisolated func pause(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.pause, group)
    }

    /// Same as ``resume(_:)-(SessionReference)``, for each session of a group.
    @discardableResult
    public nonisolated func resume(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.resume, group)
    }

    /// Same as ``hold(_:)-(SessionReference)``, for each session of a group.
    @discardableResult
    public nonisolated func hold(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.hold, group)
    }

    /// Same as ``release(_:)-(SessionReference)``, for each session of a group.
    @discardableResult
    public nonisolated func release(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.release, group)
    }

    /// Same as ``stop(_:)-(SessionReference)``, for each session of a group.
    @discardableResult
    public nonisolated func stop(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.stop, group)
    }

    /// Same as ``cancel(_:keepsPartial:)``, for each session of a group.
    @discardableResult
    public nonisolated func cancel(_ group: SessionGroup, keepsPartial: Bool = false) async throws -> [SessionID] {
        try await perform(.cancel(keepsPartial: keepsPartial), group)
    }

    /// Same as ``retry(_:)-(SessionReference)``, for each session of a group.
    @discardableResult
    public nonisolated func retry(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.retry, group)
    }

    /// Lets all failed sessions wait again at their indices.
    @discardableResult
    public nonisolated func retryAllFailed() async throws -> [SessionID] {
        try await retry(.failed)
    }

    /// Same as ``move(_:to:)-(SessionReference,_)``: moves a group to one place, contiguously and in its order.
    @discardableResult
    public nonisolated func move(_ group: SessionGroup, to destination: MoveDestination) async throws -> [SessionID] {
        try await perform(.move(destination), group)
    }

    /// Same as ``update(_:_:)-(SessionReference,_)``, for each session of a group. A verification that one of them does not support changes
    /// none.
    @discardableResult
    public nonisolated func update(_ group: SessionGroup, _ update: SessionUpdate) async throws -> [SessionID] {
        try update.validate()
        if let verification = update.verification { try await check(verification, of: everyone(in: group)) }
        return try await perform(.update(update), group)
    }

    /// Same as ``remove(_:isForced:)``, for a group: all or none of up to 10,000 sessions.
    @discardableResult
    public nonisolated func remove(_ group: SessionGroup, isForced: Bool = false) async throws -> [SessionID] {
        try await perform(.remove(isForced: isForced), group)
    }

    // MARK: By identity

    /// Same as ``run(_:again:)``.
    public nonisolated func run(_ id: SessionID, again: Bool = false) async throws { try await run(.id(id), again: again) }
    /// Same as ``runNext(_:)-(SessionReference)``.
    public nonisolated func runNext(_ id: SessionID) async throws { try await runNext(.id(id)) }
    /// Same as ``pause(_:)-(SessionReference)``.
    @discardableResult
    public nonisolated func pause(_ id: SessionID) async throws -> SessionState { try await pause(.id(id)) }
    /// Same as ``resume(_:)-(SessionReference)``.
    public nonisolated func resume(_ id: SessionID) async throws { try await resume(.id(id)) }
    /// Same as ``hold(_:)-(SessionReference)``.
    public nonisolated func hold(_ id: SessionID) async throws { try await hold(.id(id)) }
    /// Same as ``release(_:)-(SessionReference)``.
    public nonisolated func release(_ id: SessionID) async throws { try await release(.id(id)) }
    /// Same as ``stop(_:)-(SessionReference)``.
    public nonisolated func stop(_ id: SessionID) async throws { try await stop(.id(id)) }
    /// Same as ``cancel(_:keepsPartial:)``.
    public nonisolated func cancel(_ id: SessionID, keepsPartial: Bool = false) async throws {
        try await cancel(.id(id), keepsPartial: keepsPartial)
    }
    /// Same as ``retry(_:)-(SessionReference)``.
    public nonisolated func retry(_ id: SessionID) async throws { try await retry(.id(id)) }
    /// Same as ``move(_:to:)-(SessionReference,_)``.
    public nonisolated func move(_ id: SessionID, to destination: MoveDestination) async throws { try await move(.id(id), to: destination) }
    /// Same as ``update(_:_:)-(SessionReference,_)``.
    public nonisolated func update(_ id: SessionID, _ update: SessionUpdate) async throws { try await self.update(.id(id), update) }
    /// Same as ``remove(_:isForced:)``.
    public nonisolated func remove(_ id: SessionID, isForced: Bool = false) async throws { try await remove(.id(id), isForced: isForced) }
    /// Removes these sessions, or none if one does not exist; see ``remove(_:isForced:)``.
    public nonisolated func remove(_ ids: [SessionID], isForced: Bool = false) async throws {
        try await remove(.sessions(ids), isForced: isForced)
    }

    // MARK: Sending

    /// The maximum number of sessions that one transaction changes.
    static let groupSize = 10_000

    @discardableResult
    private nonisolated func perform(_ operation: Operation, _ session: SessionReference) async throws -> Answer {
        try await mailbox.send(.command(.perform(operation, .one(session))))
    }

    private nonisolated func perform(_ operation: Operation, _ group: SessionGroup) async throws -> [SessionID] {
        switch group {
        case .sessions(let ids): return try await perform(operation, on: ids, of: group)
        case .all, .account, .failed:
            // A small group needs no prior resolution; slight growth in between is harmless.
            guard await count(of: group) > Self.groupSize else {
                return try await mailbox.send(.command(.perform(operation, .group(group)))).sessions
            }
            return try await perform(operation, on: members(of: group), of: group)
        case .tag(let tag):
            await beginReadingTags()
            let changed: Result<[SessionID], any Error>
            do {
                changed = .success(try await perform(operation, on: clientReads.run { try await store.sessions(tagged: tag) }, of: group))
            } catch {
                changed = .failure(error)
            }
            await endReadingTags()
            return try changed.get()
        }
    }

    /// Performs an operation on sessions of a group that was resolved before. Skips those that have left the group since.
    private nonisolated func perform(_ operation: Operation, on found: [SessionID], of group: SessionGroup) async throws -> [SessionID] {
        guard found.count > Self.groupSize else {
            var target = SessionTarget.group(group)
            if case .tag = group { target = .found(found, of: group) }
            return try await mailbox.send(.command(.perform(operation, target))).sessions
        }
        var (ids, operation) = try await check(operation, onAll: found, of: group)
        if case .move(let destination) = operation { return try await move(ids, of: group, to: destination) }
        // Sessions that depend on others of the group may be in a later part.
        if case .remove = operation { operation = .remove(isForced: true) }
        var changed: [SessionID] = []
        var mark: Int64?
        while !ids.isEmpty {
            let part = Array(ids.prefix(Self.groupSize))
            ids.removeFirst(part.count)
            let target = mark.map { SessionTarget.more(part, of: group, mark: $0) } ?? .found(part, of: group)
            let answer = try await mailbox.send(.command(.perform(operation, target)))
            changed += answer.sessions
            mark = answer.part.mark
        }
        return changed
    }

    /// Moves very many sessions in several parts, each after the previous one.
    private nonisolated func move(_ ids: [SessionID], of group: SessionGroup, to first: MoveDestination) async throws -> [SessionID] {
        var changed: [SessionID] = []
        var start = 0
        var destination = first
        while start < ids.count {
            let end = min(start + Self.groupSize, ids.count)
            let command = Command.perform(.move(destination), .more(Array(ids[start..<end]), of: group, mark: 0))
            let answer: Answer
            do {
                answer = try await mailbox.send(.command(command))
            } catch {
                // The session before this part may have been removed.
                let other = await lastLeft(of: ids[..<start]).map { MoveDestination.after($0) } ?? first
                guard error.code == .noSuchSession, other != destination else { throw error }
                destination = other
                continue
            }
            changed += answer.sessions
            start = end
            if let last = answer.part.last { destination = .after(last) }
        }
        return changed
    }

    private func lastLeft(of ids: ArraySlice<SessionID>) async -> SessionID? {
        await settle()
        return ids.last { scheduler.sessionIndex.key(of: $0) != nil }
    }

    /// - Returns: The sessions in the order of the queue, without unnamed sessions that have left the group, and the operation for their
    ///   first part.
    private func check(
        _ operation: Operation, onAll ids: [SessionID], of group: SessionGroup
    ) async throws(QueueError) -> ([SessionID], Operation) {
        await settle()
        if case .sessions = group { return try scheduler.check(operation, onAll: ids) }
        return try scheduler.check(operation, onAll: ids.filter { scheduler.belongs($0, to: group) })
    }

    private func count(of group: SessionGroup) -> Int {
        switch group {
        case .all, .tag, .sessions: scheduler.sessionIndex.count
        case .account(let name): scheduler.accountKeys[name].flatMap { scheduler.sessionIndex.sessionsOfAccount[$0] } ?? 0
        case .failed: scheduler.sessionIndex.counts[.failed] ?? 0
        }
    }

    private nonisolated func everyone(in group: SessionGroup) async throws -> [SessionID] {
        if case .tag(let tag) = group { return try await store.sessions(tagged: tag) }
        return try await members(of: group)
    }

    private func members(of group: SessionGroup) async throws(QueueError) -> [SessionID] {
        await settle()
        return try scheduler.resolve(group).compactMap { scheduler.sessionIndex[$0]?.id }
    }
}
