extension ControllableQueue {
    /// Applies an operation to several sessions, and finds out why some of them refuse it.
    ///
    /// - Returns: The sessions that the operation changed or found in the right place, in the given order; and the others, with the reason.
    /// - Throws: The error of the whole operation, after which no session is changed, or the loss of the owner.
    package func applyFindingRefusals(
        _ operation: SessionOperation, to ids: [SessionID]
    ) async throws -> (changed: [SessionID], refused: [(id: SessionID, error: QueueError)]) {
        let changed = Set(try await apply(operation, to: SessionGroup.sessions(ids)))
        var skipped = ids.filter { !changed.contains($0) }
        var single = operation
        switch operation {
        case .move where !skipped.isEmpty:
            // A move leaves a session as it is that already has its place. The same move of this session alone would give it another place, so only
            // drafts, which have no place, are asked for the reason.
            let drafts = Set(try await sessions(in: .sessions(ids)).filter { $0.state == .draft }.map(\.id))
            skipped = skipped.filter(drafts.contains)
        case .enqueue(_, let isHeld):
            // The order has changed, so the condition of the destination would hide the reason.
            single = .enqueue(to: .end, isHeld: isHeld)
        default: break
        }
        var refused: [(id: SessionID, error: QueueError)] = []
        for id in skipped {
            // An operation on a group silently skips sessions whose state forbids it. The same operation on one session throws the reason.
            do {
                try await apply(single, to: .id(id))
            } catch let error as QueueError where ![.ownerUnreachable, .ownerLost, .shutDown].contains(error.code) {
                refused.append((id, error))
            }
        }
        return (ids.filter { id in !refused.contains { $0.id == id } }, refused)
    }
}
