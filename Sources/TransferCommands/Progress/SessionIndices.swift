import TransferKit

/// Where sessions are in the queue, kept up to date by events instead of reading the queue for each.
struct SessionIndices: Sendable {
    /// nil if it is not known.
    private var order: [SessionID]?
    private var indices: [SessionID: Int]?

    init(_ order: [SessionID]?) {
        self.order = order
    }

    /// The index of the session that an event is about, once that event has happened; of a removed one the last that it had.
    mutating func index(at event: QueueEvent) -> Int? {
        switch event.kind {
        case .gap:
            (order, indices) = (nil, nil)
            return nil
        case .added(let ids, let index):
            change { $0.insert(contentsOf: ids, at: min(index, $0.count)) }
            return index
        case .removed(_, let removed):
            change { order in
                for index in removed.reversed() where order.indices.contains(index) { order.remove(at: index) }
            }
            return removed.first
        case .moved(let id, let from, let to):
            change { order in
                guard order.indices.contains(from), order.indices.contains(to) else { return }
                order.remove(at: from)
                order.insert(id, at: to)
            }
            return to
        default:
            guard let id = event.session, let order else { return nil }
            let known = indices ?? Dictionary(order.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
            indices = known
            return known[id]
        }
    }

    private mutating func change(_ body: (inout [SessionID]) -> Void) {
        indices = nil
        guard var order else { return }
        self.order = nil
        body(&order)
        self.order = order
    }
}
