import TransferKit

/// Where sessions are in the queue, kept up to date by events instead of reading the queue for each.
struct SessionIndices: Sendable {
    /// nil if it is not known.
    private var order: SessionOrder?

    init(_ order: [SessionID]?) {
        self.order = order.map { SessionOrder($0) }
    }

    /// The index of the session that an event is about, once that event has happened; of a removed one the last that it had.
    mutating func index(at event: QueueEvent) -> Int? {
        switch event.kind {
        case .gap:
            order = nil
            return nil
        case .added(let ids, let index):
            order?.insert(ids, at: index)
            return index
        case .removed(_, let removed):
            for index in removed.reversed() { order?.remove(at: index) }
            return removed.first
        case .moved(let id, let from, let to):
            if let count = order?.count, (0..<count).contains(from), (0..<count).contains(to) {
                order?.remove(at: from)
                order?.insert([id], at: to)
            }
            return to
        default:
            return event.session.flatMap { order?.index(of: $0) }
        }
    }
}
