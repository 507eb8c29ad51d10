import TransferKit
import TransferOutput

/// The indices of sessions in the queue, updated from events.
struct SessionIndices: Sendable {
    /// The order of the sessions; nil if unknown.
    private var order: SessionOrder?

    init(_ order: [SessionID]?) {
        self.order = order.map { SessionOrder($0) }
    }

    /// Applies an event and returns the new index of its session; nil if the index is unknown. For a removed session, returns its last index.
    mutating func index(at event: QueueEvent) -> Int? {
        switch event.kind {
        case .gap: order = nil
        case .added(let ids, let index): order?.insert(ids, at: index)
        case .removed(_, let removed): for index in removed.reversed() { order?.remove(at: index) }
        case .moved(let id, let from, let to):
            if let count = order?.count, (0..<count).contains(from), (0..<count).contains(to) {
                order?.remove(at: from)
                order?.insert([id], at: to)
            }
        default: return event.session.flatMap { order?.index(of: $0) }
        }
        return event.index
    }
}
