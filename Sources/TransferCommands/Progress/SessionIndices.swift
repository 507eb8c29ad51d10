import TransferKit

/// Where sessions are in the queue, kept up to date by events instead of reading the queue for each.
struct SessionIndices: Sendable {
    private var order: [SessionID]
    private var indices: [SessionID: Int]?

    init(_ order: [SessionID]) {
        self.order = order
    }

    /// The index of the session that an event is about, once that event has happened; of a removed one the last that it had.
    mutating func index(at event: QueueEvent) -> Int? {
        switch event.kind {
        case .added(let ids, let index):
            order.insert(contentsOf: ids, at: min(index, order.count))
            indices = nil
            return index
        case .removed(_, let removed):
            for index in removed.reversed() where order.indices.contains(index) { order.remove(at: index) }
            indices = nil
            return removed.first
        case .moved(let id, let from, let to):
            guard order.indices.contains(from), order.indices.contains(to) else { return nil }
            order.remove(at: from)
            order.insert(id, at: to)
            indices = nil
            return to
        default:
            guard let id = event.session else { return nil }
            let known = indices ?? Dictionary(order.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
            indices = known
            return known[id]
        }
    }
}
