import TransferKit

extension ReferenceQueue {
    /// The number of sessions, excluding the drafts, which follow all other sessions.
    var orderedCount: Int { sessions.count { $0.state != .draft } }

    /// Throws an error if the session is a draft, because drafts have no position.
    func requirePosition(of id: SessionID) throws(QueueError) {
        guard sessions[try requireIndex(of: id)].state != .draft else { throw QueueError(.invalidTransition, "") }
    }

    mutating func saveDrafts(_ drafts: [SessionDraft]) throws(QueueError) -> InputResult {
        var added: [ReferenceSession] = []
        for draft in drafts {
            sessionNumbers += 1
            let account = accounts[try requireAccount(draft.account)].number
            added.append(ReferenceSession(draft, account: account, number: sessionNumbers, isHeld: false))
            added[added.count - 1].state = .draft
        }
        try insert(added, at: sessions.count)
        return InputResult(sessions: drafts.map(\.id))
    }

    mutating func enqueueDrafts(
        _ ids: [SessionID], isGroup: Bool, to destination: MoveDestination, isHeld: Bool
    ) throws(QueueError) -> InputResult {
        let position = try insertionPosition(destination)
        var added: [ReferenceSession] = []
        for id in ids {
            var session = sessions[try requireIndex(of: id)]
            do throws(QueueError) {
                guard session.state == .draft else { throw QueueError(.invalidTransition, "") }
                if let key = session.deduplicationKey {
                    let others = sessions.filter { $0.id != id && $0.deduplicationKey == key && ![.completed, .draft].contains($0.state) }
                    guard others.isEmpty else { throw QueueError(.duplicate, "") }
                    if added.contains(where: { $0.deduplicationKey == key }) { continue }
                }
            } catch {
                if isGroup { continue } else { throw error }
            }
            session.state = isHeld ? .held : .waiting
            added.append(session)
        }
        guard !added.isEmpty else { return InputResult() }
        sessions.removeAll { session in added.contains { $0.id == session.id } }
        sessions.insert(contentsOf: added, at: position)
        orderRevision += 1
        for later in sessions.indices where later > position { clearInterruptedPriority(later) }
        try requireOrderOfDependencies()
        return InputResult(sessions: added.map(\.id))
    }

    private func insertionPosition(_ destination: MoveDestination) throws(QueueError) -> Int {
        switch destination {
        case .front: return 0
        case .end: return orderedCount
        case .before(let id), .after(let id):
            try requirePosition(of: id)
            return try requireIndex(of: id) + (destination == .after(id) ? 1 : 0)
        case .index(let index, let expecting):
            guard expecting == nil || expecting == orderRevision else { throw QueueError(.staleOrder, "") }
            guard (0...orderedCount).contains(index) else { throw QueueError(.indexOutOfRange, "") }
            return index
        }
    }
}
