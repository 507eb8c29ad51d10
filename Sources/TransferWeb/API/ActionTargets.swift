import TransferKit

/// The sessions to which a client applies an operation.
struct ActionTargets: Sendable {
    /// The sessions that changed, and the reasons why other sessions did not.
    struct Applied: Sendable {
        var changed: [SessionID]
        var refused: [(id: SessionID, error: QueueError)] = []
    }

    /// The maximum number of IDs. To select more sessions, a client uses their account, tag or state.
    private static let maximumIDs = 1_000

    private let group: SessionGroup

    /// Parses the JSON members that select sessions, and removes these members from `members`.
    ///
    /// - Throws: A ``Problem`` if a member is invalid, or unless exactly one of the members is present.
    init(_ members: inout JSONMembers) throws(Problem) {
        var groups: [SessionGroup] = []
        if let texts = try members.strings("ids") {
            guard texts.count <= Self.maximumIDs else { throw .invalid("\"ids\" can have at most \(Self.maximumIDs) members.") }
            var ids: [SessionID] = []
            for text in texts { ids.append(try APIRouter.session(text)) }
            groups.append(.sessions(ids))
        }
        if let account = try members.string("ofAccount") { groups.append(.account(account)) }
        if let tag = try members.string("ofTag") { groups.append(.tag(tag)) }
        if let name = try members.string("inState") {
            guard let state = SessionState(rawValue: name) else { throw .invalid("There is no state \"\(name)\".") }
            groups.append(.state(state))
        }
        if try members.bool("all") { groups.append(.all) }
        guard let group = groups.first, groups.count == 1 else {
            throw .invalid("The operation needs exactly one of \"ids\", \"ofAccount\", \"ofTag\", \"inState\" and \"all\".")
        }
        self.group = group
    }

    /// Returns the selected sessions except drafts, from the last to the first, each with the session that now follows it. `next` is nil for
    /// the last session of the queue. To undo moves made after this call, take the sessions in the returned order: move each one before its
    /// `next`, or to the end if `next` is nil.
    func formerSuccessors(in queue: any ControllableQueue) async throws -> [(id: SessionID, next: SessionID?)] {
        let sessions = try await queue.sessions(in: group).filter { $0.index >= 0 }.sorted { $0.index > $1.index }
        var successors: [(id: SessionID, next: SessionID?)] = []
        var last: SessionStatus?
        for session in sessions {
            let isNext = last?.index == session.index + 1
            let next = isNext ? last?.id : try await queue.sessions(session.index + 1..<session.index + 2).first?.id
            successors.append((session.id, next))
            last = session
        }
        return successors
    }

    var hasIDs: Bool { if case .sessions = group { true } else { false } }

    /// Applies an operation to the selected sessions.
    ///
    /// - Parameter order: The revision of the queue's order that the client has read; nil to accept any order.
    /// - Throws: A ``Problem``, or an error of the queue. If the client selected a single session by its ID, also the reason why the operation
    ///   can't be applied to this session.
    func apply(_ request: OperationRequest, expecting order: UInt64?, in queue: any ControllableQueue) async throws -> Applied {
        guard case .sessions(let ids) = group else {
            guard order == nil else { throw Problem.invalid("If-Match needs \"ids\".") }
            return Applied(changed: try await queue.apply(try await request.operation(for: [], expecting: nil, in: queue), to: group))
        }
        if ids.count == 1 {
            // If the operation is not possible for the only session, the whole request fails.
            try await queue.apply(try await request.operation(for: ids, expecting: order, in: queue), to: .id(ids[0]))
            return Applied(changed: ids)
        }
        do {
            return try await Self.apply(request, to: ids, expecting: order, in: queue)
        } catch let error as QueueError where error.code == .noSuchSession {
            // Another client may have removed some of the sessions. The operation still applies to the remaining sessions.
            var (known, gone) = ([SessionID](), [(id: SessionID, error: QueueError)]())
            for id in ids {
                do {
                    _ = try await queue.status(of: id)
                    known.append(id)
                } catch let error as QueueError where error.code == .noSuchSession {
                    gone.append((id, error))
                }
            }
            guard !known.isEmpty, !gone.isEmpty else { throw error }
            var applied = try await Self.apply(request, to: known, expecting: order, in: queue)
            applied.refused += gone
            return applied
        }
    }

    private static func apply(
        _ request: OperationRequest, to ids: [SessionID], expecting order: UInt64?, in queue: any ControllableQueue
    ) async throws -> Applied {
        let operation = try await request.operation(for: ids, expecting: order, in: queue)
        let (changed, refused) = try await queue.applyFindingRefusals(operation, to: ids)
        return Applied(changed: changed, refused: refused)
    }
}
