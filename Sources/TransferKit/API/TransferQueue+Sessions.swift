extension TransferQueue {
    /// The maximum number of sessions of a group that one transaction changes.
    static let groupSize = 10_000

    /// The maximum number of sessions of a group to which one transaction applies an operation. It is lower for a removal, which can also change
    /// the sessions that depend on a removed session.
    private static func groupSize(for operation: SessionOperation) -> Int {
        if case .remove = operation { groupSize / 2 } else { groupSize }
    }

    /// Applies an operation to one session; see ``ControllableQueue/apply(_:to:)-(_,SessionReference)``.
    @discardableResult
    public nonisolated func apply(_ operation: SessionOperation, to session: SessionReference) async throws -> SessionState? {
        if case .update(let update) = operation {
            try update.validate()
            if update.changesRequirements { try await check(update, of: target(of: session)) }
        }
        if case .enqueue = operation { try await check(SessionUpdate(), of: target(of: session), always: true) }
        let result = try await send(operation, to: .one(session))
        guard operation == .pause else { return nil }
        return result.held.isEmpty ? .paused : .held
    }

    /// Applies an operation to the sessions of a group; see ``ControllableQueue/apply(_:to:)-(_,SessionGroup)``.
    @discardableResult
    public nonisolated func apply(_ operation: SessionOperation, to group: SessionGroup) async throws -> [SessionID] {
        var refused: Set<SessionID> = []
        if case .update(let update) = operation {
            try update.validate()
            if update.changesRequirements { refused = try await check(update, of: allMembers(of: group)) }
        }
        if case .enqueue = operation { try await check(SessionUpdate(), of: allMembers(of: group), always: true) }
        switch group {
        case .sessions(let ids): return try await perform(operation, on: ids, of: group, excluding: refused)
        case .all, .account, .state:
            // The writer determines the members of a small group when it handles the command. If the group has grown slightly above the limit by
            // then, one transaction still changes all members.
            let isLarge = await count(of: group) > Self.groupSize(for: operation)
            guard isLarge || !refused.isEmpty else {
                return try await send(operation, to: .group(group)).sessions
            }
            return try await perform(operation, on: members(of: group), of: group, excluding: refused)
        case .tag(let tag):
            await beginReadingTags()
            let changed: Result<[SessionID], any Error>
            do {
                changed = .success(
                    try await perform(
                        operation, on: clientReads.run { try await store.sessions(tagged: tag) }, of: group, excluding: refused)
                )
            } catch {
                changed = .failure(error)
            }
            await endReadingTags()
            return try changed.get()
        }
    }

    /// Performs an operation on the sessions that were found for a group. Skips sessions that no longer belong to the group.
    private nonisolated func perform(
        _ operation: SessionOperation, on all: [SessionID], of group: SessionGroup, excluding refused: Set<SessionID> = []
    ) async throws -> [SessionID] {
        let found = refused.isEmpty ? all : all.filter { !refused.contains($0) }
        guard found.count > Self.groupSize(for: operation) else {
            var target = SessionTarget.group(group)
            if case .tag = group { target = .found(found, of: group) }
            if !refused.isEmpty { target = .found(found, of: group) }
            return try await send(operation, to: target).sessions
        }
        let (ids, checked) = try await check(operation, onAll: found, of: group)
        var operation = checked
        if case .move(let destination) = operation { return try await move(ids, of: group, to: destination) }
        // The removal is forced, because a later batch may contain sessions that depend on a session of this batch. Unless the
        // caller forces the removal, the check above has already rejected a group on which other sessions depend.
        if case .remove = operation { operation = .remove(isForced: true) }
        var changed: [SessionID] = []
        // The mark of the first batch, which all later batches share; see ``InputResult/Part/mark``.
        var mark: Int64?
        let size = Self.groupSize(for: operation)
        for start in stride(from: 0, to: ids.count, by: size) {
            let batch = Array(ids[start..<min(start + size, ids.count)])
            let target = mark.map { SessionTarget.more(batch, of: group, mark: $0) } ?? .found(batch, of: group)
            let result = try await send(operation, to: target)
            changed += result.sessions
            mark = result.part.mark
            // Insert the next batch after this batch.
            if case .enqueue(_, let isHeld) = operation, let last = result.sessions.last {
                operation = .enqueue(to: .after(last), isHeld: isHeld)
            }
        }
        return changed
    }

    private nonisolated func send(_ operation: SessionOperation, to target: SessionTarget) async throws(QueueError) -> InputResult {
        try await mailbox.send(.command(.perform(operation, target)))
    }

    /// Moves a large group in several batches.
    private nonisolated func move(_ ids: [SessionID], of group: SessionGroup, to first: MoveDestination) async throws -> [SessionID] {
        var changed: [SessionID] = []
        var start = 0
        var destination = first
        while start < ids.count {
            let end = min(start + Self.groupSize, ids.count)
            let command = Command.perform(.move(to: destination), .more(Array(ids[start..<end]), of: group, mark: 0))
            let result: InputResult
            do {
                result = try await mailbox.send(.command(command))
            } catch {
                // The destination session may have been removed. Continue after the last session that was moved and still exists.
                let other = await lastRemaining(of: ids[..<start]).map { MoveDestination.after($0) } ?? first
                guard error.code == .noSuchSession, other != destination else { throw error }
                destination = other
                continue
            }
            changed += result.sessions
            start = end
            if let last = result.part.last { destination = .after(last) }
        }
        return changed
    }

    private func lastRemaining(of ids: ArraySlice<SessionID>) async -> SessionID? {
        await waitForEarlierInputs()
        return ids.last { scheduler.sessionIndex.key(of: $0) != nil }
    }

    /// Checks that an operation is valid for a large group.
    ///
    /// - Returns: The sessions in the order of the queue, and the operation to perform on the first batch. Omits sessions that have left the
    ///   group, unless the group is a list of IDs.
    private func check(
        _ operation: SessionOperation, onAll ids: [SessionID], of group: SessionGroup
    ) async throws(QueueError) -> ([SessionID], SessionOperation) {
        await waitForEarlierInputs()
        if case .sessions = group { return try scheduler.check(operation, onAll: ids) }
        return try scheduler.check(operation, onAll: ids.filter { scheduler.belongs($0, to: group) })
    }

    private func count(of group: SessionGroup) -> Int {
        switch group {
        case .all, .tag, .sessions: scheduler.sessionIndex.count
        case .account(let name): scheduler.accountKeys[name].flatMap { scheduler.sessionIndex.sessionsOfAccount[$0] } ?? 0
        case .state(let state): scheduler.sessionIndex.counts[state] ?? 0
        }
    }

    nonisolated func allMembers(of group: SessionGroup) async throws -> [SessionID] {
        if case .tag(let tag) = group { return try await clientReads.run { try await store.sessions(tagged: tag) } }
        return try await members(of: group)
    }

    private func members(of group: SessionGroup) async throws(QueueError) -> [SessionID] {
        await waitForEarlierInputs()
        return try scheduler.resolve(group).compactMap { scheduler.sessionIndex[$0]?.id }
    }
}
