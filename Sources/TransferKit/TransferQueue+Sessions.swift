/// What can be done to sessions. Each call is durable when it returns, and none waits for the network.
///
/// A call that names one session throws ``QueueError`` with the code `noSuchSession`, `indexOutOfRange`, `staleOrder`, or, if it makes no sense
/// in the session's state, `invalidTransition`, and then nothing is changed. A call that names a group applies to those that it makes sense for,
/// and returns them; large groups are worked off in transactions of 10,000.
extension TransferQueue {
    /// Runs a session now, whatever the order, a hold, a start time, a dependency or a backoff says, but never with a blocked account or a missing
    /// transport: then it is next. Endpoints that are left alone are asked once more, at once. If no slot is free, one other session is interrupted, and comes back when this
    /// one is done. On a paused session: as ``resume(_:)-(SessionReference)``. On a running one: nothing. On a stopped queue: it is next, and the
    /// queue is not started.
    ///
    /// - Parameter again: Whether a completed session is to be transferred anew; otherwise that throws `alreadyCompleted`.
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public nonisolated func run(_ session: SessionReference, again: Bool = false) async throws {
        try await perform(.run(again: again), session)
    }

    /// Lets a session be the next that starts; nothing is interrupted.
    public nonisolated func runNext(_ session: SessionReference) async throws {
        try await perform(.runNext, session)
    }

    /// Interrupts a running session at its next safe point, with its slot kept. A waiting session is held instead.
    ///
    /// - Returns: The state that the session gets: paused or held.
    @discardableResult
    public nonisolated func pause(_ session: SessionReference) async throws -> SessionState {
        try await perform(.pause, session).held.isEmpty ? .paused : .held
    }

    /// Lets a paused session go on with the slot that it kept.
    public nonisolated func resume(_ session: SessionReference) async throws {
        try await perform(.resume, session)
    }

    /// Sets a session aside: it keeps its index, gives its slot up, and never starts until ``release(_:)-(SessionReference)``.
    public nonisolated func hold(_ session: SessionReference) async throws {
        try await perform(.hold, session)
    }

    /// Lets a held session wait for its turn again.
    public nonisolated func release(_ session: SessionReference) async throws {
        try await perform(.release, session)
    }

    /// Takes a session's slot for another one: it goes on by itself once another one was activated, or after 5 s if there is none.
    public nonisolated func stop(_ session: SessionReference) async throws {
        try await perform(.stop, session)
    }

    /// Ends a session; it is kept at its index and never runs again by itself.
    ///
    /// - Parameter keepsPartial: Whether incomplete content at the server is left there; otherwise it is removed as soon as that can be done.
    public nonisolated func cancel(_ session: SessionReference, keepsPartial: Bool = false) async throws {
        try await perform(.cancel(keepsPartial: keepsPartial), session)
    }

    /// Lets a failed or cancelled session wait at its index again, for those items that are not done.
    ///
    /// - Throws: ``QueueError``, also with the code `duplicate` if another session with the same deduplication key is not completed.
    public nonisolated func retry(_ session: SessionReference) async throws {
        try await perform(.retry, session)
    }

    /// Changes the order; nothing is interrupted.
    ///
    /// - Throws: ``QueueError`` with the code `indexOutOfRange` rather than clamp, or, in a strict queue, `impossibleOrder`.
    public nonisolated func move(_ session: SessionReference, to destination: MoveDestination) async throws {
        try await perform(.move(destination), session)
    }

    /// Changes what the update names of a session that is not finished.
    ///
    /// - Throws: ``QueueError``, also with the code `invalidRequest` for a verification that the account's endpoints can't do.
    public nonisolated func update(_ session: SessionReference, _ update: SessionUpdate) async throws {
        try update.validate()
        if let verification = update.verification { try await check(verification, of: target(of: session)) }
        try await perform(.update(update), session)
    }

    /// Removes a session in any state. One that runs is interrupted. The session, what is known of its files, and its checkpoints are gone when
    /// the call returns; local sources and complete remote files are never touched, and incomplete remote content is removed later.
    ///
    /// - Parameter isForced: Whether sessions that come after this one may lose that condition; otherwise they are a reason to refuse.
    /// - Throws: ``QueueError``, also with the code `hasDependents`.
    public nonisolated func remove(_ session: SessionReference, isForced: Bool = false) async throws {
        try await perform(.remove(isForced: isForced), session)
    }

    // MARK: Groups

    /// As ``run(_:again:)``, for each of a group, in the order of the queue.
    @discardableResult
    public nonisolated func run(_ group: SessionGroup, again: Bool = false) async throws -> [SessionID] {
        try await perform(.run(again: again), group)
    }

    /// As ``runNext(_:)-(SessionReference)``, for each of a group; they keep their order.
    @discardableResult
    public nonisolated func runNext(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.runNext, group)
    }

    /// As ``pause(_:)-(SessionReference)``, for each of a group; those that were waiting and are held now are among those that are returned.
    @discardableResult
    public nonisolated func pause(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.pause, group)
    }

    /// As ``resume(_:)-(SessionReference)``, for each of a group.
    @discardableResult
    public nonisolated func resume(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.resume, group)
    }

    /// As ``hold(_:)-(SessionReference)``, for each of a group.
    @discardableResult
    public nonisolated func hold(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.hold, group)
    }

    /// As ``release(_:)-(SessionReference)``, for each of a group.
    @discardableResult
    public nonisolated func release(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.release, group)
    }

    /// As ``stop(_:)-(SessionReference)``, for each of a group.
    @discardableResult
    public nonisolated func stop(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.stop, group)
    }

    /// As ``cancel(_:keepsPartial:)``, for each of a group.
    @discardableResult
    public nonisolated func cancel(_ group: SessionGroup, keepsPartial: Bool = false) async throws -> [SessionID] {
        try await perform(.cancel(keepsPartial: keepsPartial), group)
    }

    /// As ``retry(_:)-(SessionReference)``, for each of a group.
    @discardableResult
    public nonisolated func retry(_ group: SessionGroup) async throws -> [SessionID] {
        try await perform(.retry, group)
    }

    /// Lets all failed sessions wait at their indices again.
    @discardableResult
    public nonisolated func retryAllFailed() async throws -> [SessionID] {
        try await retry(.failed)
    }

    /// As ``move(_:to:)-(SessionReference,_)``: the group goes to one place, in its order, without anything between.
    @discardableResult
    public nonisolated func move(_ group: SessionGroup, to destination: MoveDestination) async throws -> [SessionID] {
        try await perform(.move(destination), group)
    }

    /// As ``update(_:_:)-(SessionReference,_)``, for each of a group; a verification that one of them can't have changes none.
    @discardableResult
    public nonisolated func update(_ group: SessionGroup, _ update: SessionUpdate) async throws -> [SessionID] {
        try update.validate()
        if let verification = update.verification { try await check(verification, of: everyone(in: group)) }
        return try await perform(.update(update), group)
    }

    /// As ``remove(_:isForced:)``: all or none of up to 10,000.
    @discardableResult
    public nonisolated func remove(_ group: SessionGroup, isForced: Bool = false) async throws -> [SessionID] {
        try await perform(.remove(isForced: isForced), group)
    }

    // MARK: By identity

    /// As ``run(_:again:)``.
    public nonisolated func run(_ id: SessionID, again: Bool = false) async throws { try await run(.id(id), again: again) }
    /// As ``runNext(_:)-(SessionReference)``.
    public nonisolated func runNext(_ id: SessionID) async throws { try await runNext(.id(id)) }
    /// As ``pause(_:)-(SessionReference)``.
    @discardableResult
    public nonisolated func pause(_ id: SessionID) async throws -> SessionState { try await pause(.id(id)) }
    /// As ``resume(_:)-(SessionReference)``.
    public nonisolated func resume(_ id: SessionID) async throws { try await resume(.id(id)) }
    /// As ``hold(_:)-(SessionReference)``.
    public nonisolated func hold(_ id: SessionID) async throws { try await hold(.id(id)) }
    /// As ``release(_:)-(SessionReference)``.
    public nonisolated func release(_ id: SessionID) async throws { try await release(.id(id)) }
    /// As ``stop(_:)-(SessionReference)``.
    public nonisolated func stop(_ id: SessionID) async throws { try await stop(.id(id)) }
    /// As ``cancel(_:keepsPartial:)``.
    public nonisolated func cancel(_ id: SessionID, keepsPartial: Bool = false) async throws {
        try await cancel(.id(id), keepsPartial: keepsPartial)
    }
    /// As ``retry(_:)-(SessionReference)``.
    public nonisolated func retry(_ id: SessionID) async throws { try await retry(.id(id)) }
    /// As ``move(_:to:)-(SessionReference,_)``.
    public nonisolated func move(_ id: SessionID, to destination: MoveDestination) async throws { try await move(.id(id), to: destination) }
    /// As ``update(_:_:)-(SessionReference,_)``.
    public nonisolated func update(_ id: SessionID, _ update: SessionUpdate) async throws { try await self.update(.id(id), update) }
    /// As ``remove(_:isForced:)``.
    public nonisolated func remove(_ id: SessionID, isForced: Bool = false) async throws { try await remove(.id(id), isForced: isForced) }
    /// Removes these sessions, or none if one does not exist; as ``remove(_:isForced:)``.
    public nonisolated func remove(_ ids: [SessionID], isForced: Bool = false) async throws {
        try await remove(.sessions(ids), isForced: isForced)
    }

    // MARK: Sending

    /// How many sessions a transaction changes at most.
    static let groupSize = 10_000

    @discardableResult
    private nonisolated func perform(_ operation: Operation, _ session: SessionReference) async throws -> Answer {
        try await mailbox.send(.command(.perform(operation, .one(session))))
    }

    private nonisolated func perform(_ operation: Operation, _ group: SessionGroup) async throws -> [SessionID] {
        switch group {
        case .sessions(let ids): return try await perform(operation, on: ids, of: group)
        case .all, .account, .failed:
            // It need not be looked through twice; whether it is a little larger by then does not matter.
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

    /// Does something to the sessions that were found to belong to a group, as far as they still do when it is done.
    private nonisolated func perform(_ operation: Operation, on found: [SessionID], of group: SessionGroup) async throws -> [SessionID] {
        guard found.count > Self.groupSize else {
            var target = SessionTarget.group(group)
            if case .tag = group { target = .found(found, of: group) }
            return try await mailbox.send(.command(.perform(operation, target))).sessions
        }
        var (ids, operation) = try await check(operation, onAll: found, of: group)
        if case .move(let destination) = operation { return try await move(ids, of: group, to: destination) }
        // Those that wait for others of the group may be in a later part.
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

    /// Moves very many sessions in several parts, each behind the one before it.
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
                // The one that they were to go behind may have been removed meanwhile.
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
        return ids.last { scheduler.roster.key(of: $0) != nil }
    }

    /// - Returns: The sessions in the order of the queue, without those that left the group meanwhile unless they were named, and the operation
    ///   for the first part of them.
    private func check(
        _ operation: Operation, onAll ids: [SessionID], of group: SessionGroup
    ) async throws(QueueError) -> ([SessionID], Operation) {
        await settle()
        if case .sessions = group { return try scheduler.check(operation, onAll: ids) }
        return try scheduler.check(operation, onAll: ids.filter { scheduler.belongs($0, to: group) })
    }

    private func count(of group: SessionGroup) -> Int {
        switch group {
        case .all, .tag, .sessions: scheduler.roster.count
        case .account(let name): scheduler.accountKeys[name].flatMap { scheduler.roster.sessionsOfAccount[$0] } ?? 0
        case .failed: scheduler.roster.counts[.failed] ?? 0
        }
    }

    private nonisolated func everyone(in group: SessionGroup) async throws -> [SessionID] {
        if case .tag(let tag) = group { return try await store.sessions(tagged: tag) }
        return try await members(of: group)
    }

    private func members(of group: SessionGroup) async throws(QueueError) -> [SessionID] {
        await settle()
        return try scheduler.resolve(group).compactMap { scheduler.roster[$0]?.id }
    }
}
