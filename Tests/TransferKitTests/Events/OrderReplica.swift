import TransferKit

/// A copy of a queue's order that is updated only from events, like the rows of a list view.
struct OrderReplica: Sendable {
    private(set) var ids: [SessionID] = []
    /// The order after each change, by revision.
    private(set) var orders: [UInt64: [SessionID]] = [:]
    private(set) var kinds: [QueueEvent.Kind] = []
    /// The inconsistencies that would crash a list view.
    private(set) var problems: [String] = []
    /// The number of changes since `willChangeQueue`, or nil outside a change of the order.
    private var changes: Int?
    private var revision: UInt64?

    static func follow(_ events: QueueEvents) async -> OrderReplica {
        await events.reduce(into: OrderReplica()) { $0.apply($1.kind) }
    }

    mutating func apply(_ kind: QueueEvent.Kind) {
        if case .progress = kind { return }
        kinds.append(kind)
        switch kind {
        case .willChangeQueue(let revision):
            expect(changes == nil, "a change begins inside another change")
            let isNext = self.revision.map { $0 + 1 == revision } ?? true
            expect(isNext, "unexpected revision \(revision) of the order")
            changes = 0
            self.revision = revision
        case .didChangeQueue(let revision):
            expect(changes == 1, "\(changes ?? -1) changes between willChangeQueue and didChangeQueue")
            expect(self.revision == revision, "willChangeQueue and didChangeQueue have different revisions")
            changes = nil
            orders[revision] = ids
        case .added(let added, let index):
            countChange(kind)
            guard expect((0...ids.count).contains(index) && !added.isEmpty, "added at \(index) of \(ids.count)") else { return }
            ids.insert(contentsOf: added, at: index)
        case .removed(let removed, let indices):
            countChange(kind)
            let isAscending = zip(indices, indices.dropFirst()).allSatisfy(<)
            let areValid = indices.allSatisfy(ids.indices.contains)
            guard expect(isAscending && areValid && !indices.isEmpty, "removed at \(indices) of \(ids.count)") else { return }
            expect(indices.map { ids[$0] } == removed, "other sessions were at \(indices)")
            for index in indices.reversed() { ids.remove(at: index) }
        case .moved(let id, let from, let to):
            countChange(kind)
            guard expect(ids.indices.contains(from) && ids.indices.contains(to), "moved from \(from) to \(to)") else { return }
            expect(ids[from] == id, "another session was at \(from)")
            ids.insert(ids.remove(at: from), at: to)
        case .gap:
            expect(false, "a gap")
        default:
            expect(changes == nil, "\(kind.name) inside a change")
        }
    }

    private mutating func countChange(_ kind: QueueEvent.Kind) {
        expect(changes != nil, "\(kind.name) outside a change")
        changes = changes.map { $0 + 1 }
    }

    @discardableResult
    private mutating func expect(_ isTrue: Bool, _ problem: String) -> Bool {
        if !isTrue { problems.append(problem) }
        return isTrue
    }
}
