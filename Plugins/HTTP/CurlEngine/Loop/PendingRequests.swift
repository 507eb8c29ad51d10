/// Requests that wait for a connection, in the order of their arrival.
struct PendingRequests {
    private var orders: [PendingRequest.ID: PendingRequest] = [:]
    /// Also contains removed ones.
    private var queue: [PendingRequest.ID] = []
    private var first = 0

    var isEmpty: Bool { orders.isEmpty }

    mutating func append(_ order: PendingRequest) {
        orders[order.id] = order
        queue.append(order.id)
    }

    mutating func remove(_ id: PendingRequest.ID) -> PendingRequest? {
        orders.removeValue(forKey: id)
    }

    mutating func popFirst() -> PendingRequest? {
        while first < queue.count {
            let order = orders.removeValue(forKey: queue[first])
            first += 1
            if let order { return order }
        }
        queue.removeAll(keepingCapacity: true)
        first = 0
        return nil
    }
}
