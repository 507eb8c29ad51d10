import ArgumentParser
import TransferControl
import TransferKit

/// Which sessions a command is about: some by their IDs, all, or those that meet all conditions.
struct SessionSelection {
    var ids: [String]
    var filters: SessionFilters
    var tag: String?

    private var hasConditions: Bool { filters.account != nil || tag != nil || filters.failed }

    func validate() throws {
        switch (!ids.isEmpty, filters.all, hasConditions) {
        case (true, false, false), (false, true, false), (false, false, true): return
        case (false, false, false):
            throw ValidationError("Nothing is selected; name IDs, or give --all, --account, --tag or --failed.")
        default:
            throw ValidationError("IDs, --all and the filters --account, --tag and --failed can't be combined with each other.")
        }
    }

    /// Does something to the sessions that are meant, and returns those that it fits.
    ///
    /// - Parameter named: The sessions that were named by ID, once they are known. Given again if the owner ended before it had answered: it may
    ///   have done what it was asked for.
    /// - Throws: A `CommandFailure` for an ID that no session has, before anything is done.
    func apply(
        _ operation: SessionOperation, in queue: any ControllableQueue, toNamed named: inout [SessionID]?
    ) async throws -> AppliedOperation {
        guard !ids.isEmpty else { return AppliedOperation(changed: try await queue.apply(operation, to: group(in: queue))) }
        guard let known = named else {
            let found = try await namedSessions(in: queue)
            named = found
            return try await apply(operation, to: found, in: queue)
        }
        return try await repeatOperation(operation, on: known, in: queue)
    }

    private func apply(_ operation: SessionOperation, to named: [SessionID], in queue: any ControllableQueue) async throws
        -> AppliedOperation
    {
        if named.count == 1 {
            if let refusal = try await Self.refusal(of: operation, for: named[0], in: queue) { throw refusal }
            return AppliedOperation(changed: named)
        }
        let fitting = Set(try await queue.apply(operation, to: SessionGroup.sessions(named)))
        var applied = AppliedOperation(changed: named.filter(fitting.contains))
        for id in named where !fitting.contains(id) {
            // A group leaves out what it does not fit, without saying why; a session by itself does.
            if let refusal = try await Self.refusal(of: operation, for: id, in: queue) {
                applied.refusals.append(refusal)
            } else {
                applied.changed.append(id)
            }
        }
        return applied
    }

    /// Does something to one session.
    ///
    /// - Returns: Why it could not be done; nil if it was.
    private static func refusal(
        of operation: SessionOperation, for id: SessionID, in queue: any ControllableQueue
    ) async throws -> QueueError? {
        do {
            try await queue.apply(operation, to: .id(id))
            return nil
        } catch let error as QueueError where !error.isEndOfOwner {
            guard let session = try? await queue.session(id) else { return error }
            return operation.refusal(error, of: session)
        }
    }

    /// Does what may be done already. Those that are as they are to be are taken for done.
    private func repeatOperation(
        _ operation: SessionOperation, on named: [SessionID], in queue: any ControllableQueue
    ) async throws -> AppliedOperation {
        var done: Set<SessionID> = []
        for id in named {
            do {
                if operation.isDone(in: try await queue.session(id).state) { done.insert(id) }
            } catch let error as QueueError where error.code == .noSuchSession && operation.isRemoval {
                done.insert(id)
            }
        }
        let rest = named.filter { !done.contains($0) }
        guard !rest.isEmpty else { return AppliedOperation(changed: named) }
        var applied = try await apply(operation, to: rest, in: queue)
        let changed = done.union(applied.changed)
        applied.changed = named.filter(changed.contains)
        return applied
    }

    private func namedSessions(in queue: any ControllableQueue) async throws -> [SessionID] {
        var found: [SessionID] = []
        for id in ids {
            let session = try await SessionPrefix.resolve(id, in: queue)
            if !found.contains(session) { found.append(session) }
        }
        return found
    }

    private func group(in queue: any ControllableQueue) async throws -> SessionGroup {
        if let account = filters.account, try await queue.account(account) == nil {
            throw CommandFailure(.unfit, "There is no account named \"\(account)\".")
        }
        switch (filters.account, tag, filters.failed) {
        case (nil, nil, false): return .all
        case (let account?, nil, false): return .account(account)
        case (nil, let tag?, false): return .tag(tag)
        case (nil, nil, true): return .failed
        default: break
        }
        var found: [SessionID] = []
        try await queue.forEachSession { session in
            let isMeant =
                (filters.account == nil || session.account == filters.account) && (tag.map(session.tags.contains) ?? true)
                && (!filters.failed || session.state == .failed)
            if isMeant { found.append(session.id) }
            return true
        }
        return .sessions(found)
    }
}

extension SessionOperation {
    fileprivate var isRemoval: Bool {
        if case .remove = self { true } else { false }
    }

    /// Whether a session in this state is as it is after the operation, and would refuse it.
    fileprivate func isDone(in state: SessionState) -> Bool {
        switch (self, state) {
        case (.cancel, .cancelled), (.hold, .held), (.pause, .paused), (.pause, .held), (.run, .completed), (.runNext, .running),
            (.runNext, .completed), (.release, .waiting), (.release, .running), (.release, .completed), (.resume, .waiting),
            (.resume, .running), (.resume, .completed), (.retry, .waiting), (.retry, .running), (.retry, .completed):
            true
        default: false
        }
    }
}

/// What became of an operation on sessions.
struct AppliedOperation: Sendable {
    var changed: [SessionID]
    /// Of sessions that were named and that it does not fit.
    var refusals: [QueueError] = []
}

/// Conditions that every command about sessions takes.
struct SessionFilters: ParsableArguments {
    @Flag(help: "All sessions.")
    var all = false

    @Option(help: "The sessions of this account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String?

    @Flag(help: "The sessions that failed.")
    var failed = false
}

/// A selection as most commands take it.
struct SelectionArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp("IDs, or the first characters of one that no other begins with.", valueName: "id"),
        completion: Candidates.sessions)
    var ids: [String] = []

    @OptionGroup var filters: SessionFilters

    @Option(help: "The sessions with this tag.", completion: Candidates.tags, transform: TextArgument.text)
    var tag: String?

    var selection: SessionSelection { SessionSelection(ids: ids, filters: filters, tag: tag) }

    func validate() throws { try selection.validate() }
}
