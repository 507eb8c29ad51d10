import TransferKit

/// The sessions to which an operation of a client applies.
struct ActionTargets: Sendable {
    /// The sessions that changed, and the reasons why others did not.
    struct Applied: Sendable {
        var changed: [SessionID]
        var refused: [(id: SessionID, error: QueueError)] = []
    }

    private let group: SessionGroup

    /// - Throws: A ``Problem`` unless exactly one of the members selects sessions.
    init(_ members: inout JSONMembers) throws(Problem) {
        var groups: [SessionGroup] = []
        if let texts = try members.strings("ids") {
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
            throw .invalid("The operation needs \"ids\", \"ofAccount\", \"ofTag\", \"inState\" or \"all\".")
        }
        self.group = group
    }

    /// - Parameter order: The revision of the order that the client knows; nil to accept any order.
    func apply(_ request: OperationRequest, expecting order: UInt64?, in queue: any ControllableQueue) async throws -> Applied {
        guard case .sessions(let ids) = group else {
            guard order == nil else { throw Problem.invalid("If-Match needs \"ids\".") }
            return Applied(changed: try await queue.apply(try await request.operation(for: [], expecting: nil, in: queue), to: group))
        }
        let operation = try await request.operation(for: ids, expecting: order, in: queue)
        if ids.count == 1 {
            // For a single session, the reason is the error of the request.
            try await queue.apply(operation, to: .id(ids[0]))
            return Applied(changed: ids)
        }
        let (changed, refused) = try await queue.applyFindingRefusals(operation, to: ids)
        return Applied(changed: changed, refused: refused)
    }
}
