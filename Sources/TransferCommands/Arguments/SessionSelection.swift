import ArgumentParser
import TransferControl
import TransferKit

/// The sessions to which a command applies: the sessions with the given IDs, all sessions, or the sessions that match all given filters.
/// Several states form one filter: a session in any of these states matches.
struct SessionSelection {
    private let ids: [String]
    let isAll: Bool
    private let account: String?
    private let tag: String?
    /// The states of the selected sessions; empty for any state.
    private let states: Set<SessionState>
    /// The sessions that `--all` selects.
    private let everything: SessionGroup

    init(ids: [String], filters: SessionFilters, tag: String? = nil) {
        (self.ids, self.tag, everything) = (ids, tag, .all)
        (isAll, account, states) = (filters.all, filters.account, filters.states)
    }

    init(drafts ids: [String], all: Bool) {
        (self.ids, isAll, account, tag, states) = (ids, all, nil, nil, [])
        everything = .state(.draft)
    }

    var hasIDs: Bool { !ids.isEmpty }

    private var hasConditions: Bool { account != nil || tag != nil || !states.isEmpty }

    /// Checks that the arguments select sessions in exactly one way: by IDs, by `--all` or by filters.
    ///
    /// - Throws: A `ValidationError` otherwise.
    func validate() throws {
        switch (!ids.isEmpty, isAll, hasConditions) {
        case (true, false, false), (false, true, false), (false, false, true): return
        case (false, false, false):
            throw ValidationError(
                "No sessions are selected. Use IDs, indices such as '#3' (in quotes), --all, or the filters \(SessionFilters.names).")
        default:
            throw ValidationError(
                "Use only one of IDs, --all or filters (\(SessionFilters.names)). Filters can be combined with each other.")
        }
    }

    /// Applies an operation to the selected sessions.
    ///
    /// - Parameter resolved: Receives the sessions that were selected by ID. If the queue's owner exited before it responded, repeat the
    ///   call with the same variable, because the owner may have completed the operation.
    /// - Returns: The changed sessions, and an error for each session that was selected by ID and rejected the operation.
    /// - Throws: A `CommandFailure` for an unknown ID or account; no session is then changed. A `QueueError` if the IDs select a single session,
    ///   and this session rejects the operation.
    func apply(
        _ operation: SessionOperation, in queue: any ControllableQueue, resolved: inout [SessionID]?
    ) async throws -> AppliedOperation {
        guard !ids.isEmpty else { return AppliedOperation(changed: try await queue.apply(operation, to: group(in: queue))) }
        guard let known = resolved else {
            let found = try await resolvedSessions(in: queue)
            resolved = found
            return try await apply(operation, to: found, in: queue)
        }
        return try await repeatOperation(operation, on: known, in: queue)
    }

    private func apply(_ operation: SessionOperation, to sessions: [SessionID], in queue: any ControllableQueue) async throws
        -> AppliedOperation
    {
        guard sessions.count == 1 else {
            let (changed, refused) = try await queue.applyFindingRefusals(operation, to: sessions)
            var applied = AppliedOperation(changed: changed)
            for (id, error) in refused { applied.refusals.append(await Self.errorWithAdvice(operation, id, error, in: queue)) }
            return applied
        }
        do {
            try await queue.apply(operation, to: .id(sessions[0]))
            return AppliedOperation(changed: sessions)
        } catch let error as QueueError where !error.isLossOfOwner {
            throw await Self.errorWithAdvice(operation, sessions[0], error, in: queue)
        }
    }

    private static func errorWithAdvice(
        _ operation: SessionOperation, _ id: SessionID, _ error: QueueError, in queue: any ControllableQueue
    ) async -> QueueError {
        guard let session = try? await queue.status(of: id) else { return error }
        return operation.addingAdvice(to: error, of: session)
    }

    /// Repeats an operation that the queue's previous owner may have completed. The result includes sessions that are already in the target
    /// state.
    private func repeatOperation(
        _ operation: SessionOperation, on sessions: [SessionID], in queue: any ControllableQueue
    ) async throws -> AppliedOperation {
        var done: Set<SessionID> = []
        for id in sessions {
            do {
                if operation.isDone(in: try await queue.status(of: id).state) { done.insert(id) }
            } catch let error as QueueError where error.code == .noSuchSession && operation.isRemoval {
                done.insert(id)
            }
        }
        let rest = sessions.filter { !done.contains($0) }
        guard !rest.isEmpty else { return AppliedOperation(changed: sessions) }
        var applied = try await apply(operation, to: rest, in: queue)
        let changed = done.union(applied.changed)
        applied.changed = sessions.filter(changed.contains)
        return applied
    }

    private func resolvedSessions(in queue: any ControllableQueue) async throws -> [SessionID] {
        var found: [SessionID] = []
        for id in ids {
            let session = try await SessionPrefix.resolve(id, in: queue)
            if !found.contains(session) { found.append(session) }
        }
        return found
    }

    private func group(in queue: any ControllableQueue) async throws -> SessionGroup {
        if let account { _ = try await queue.existingAccount(account) }
        switch (account, tag, states.count) {
        case (nil, nil, 0): return everything
        case (let account?, nil, 0): return .account(account)
        case (nil, let tag?, 0): return .tag(tag)
        case (nil, nil, 1): return .state(states.first ?? .failed)
        default: return .sessions(try await matches(in: queue).map(\.id))
        }
    }

    /// Returns the selected sessions, in queue order if `--all` or filters select them.
    ///
    /// - Throws: A `CommandFailure` for an unknown ID or account.
    func sessions(in queue: any ControllableQueue) async throws -> [SessionStatus] {
        guard ids.isEmpty else {
            var sessions: [SessionStatus] = []
            for id in try await resolvedSessions(in: queue) { sessions.append(try await queue.status(of: id)) }
            return sessions
        }
        if let account { _ = try await queue.existingAccount(account) }
        return try await matches(in: queue)
    }

    private func matches(in queue: any ControllableQueue) async throws -> [SessionStatus] {
        var found: [SessionStatus] = []
        try await queue.forEachSession { session in
            let isSelected =
                (account == nil || session.account == account) && (tag.map(session.tags.contains) ?? true)
                && (states.isEmpty || states.contains(session.state))
            if isSelected { found.append(session) }
            return true
        }
        return found
    }
}

extension SessionOperation {
    fileprivate var isRemoval: Bool {
        if case .remove = self { true } else { false }
    }

    /// Whether an earlier call may have applied the operation to a session in this state. Such a session would reject a second call.
    fileprivate func isDone(in state: SessionState) -> Bool {
        switch (self, state) {
        case (.enqueue, _): state != .draft
        case (.cancel, .cancelled), (.hold, .held), (.pause, .paused), (.pause, .held), (.run, .completed), (.runNext, .running),
            (.runNext, .completed), (.release, .waiting), (.release, .running), (.release, .completed), (.resume, .waiting),
            (.resume, .running), (.resume, .completed), (.retry, .waiting), (.retry, .running), (.retry, .completed):
            true
        default: false
        }
    }
}

/// The result of an operation on several sessions.
struct AppliedOperation: Sendable {
    var changed: [SessionID]
    /// The error of each session that was selected by ID and rejected the operation.
    var refusals: [QueueError] = []
}

/// The filters of commands that select sessions, except `--tag`, which each command declares itself.
struct SessionFilters: ParsableArguments {
    @Flag(help: "Select all sessions.")
    var all = false

    @Option(help: "Select the sessions of this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String?

    @Flag(help: "Select failed sessions.")
    var failed = false

    @Flag(help: "Select cancelled sessions.")
    var cancelled = false

    @Flag(help: "Select completed sessions.")
    var completed = false

    /// The selected states; empty for any state.
    var states: Set<SessionState> {
        Set((failed ? [.failed] : []) + (cancelled ? [.cancelled] : []) + (completed ? [.completed] : []))
    }

    static let names = "--account, --tag, --failed, --cancelled and --completed"
}

struct SelectionArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp("\(SessionPrefix.manyHelp).", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @OptionGroup var filters: SessionFilters

    @Option(help: "Select the sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters, tag: tag) }

    func validate() throws { try selection.validate() }
}
