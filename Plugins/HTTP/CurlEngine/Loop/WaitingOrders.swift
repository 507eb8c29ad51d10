/// Requests that wait for a connection, in the order of their arrival.
struct WaitingOrders {
    private var orders: [TransferOrder.ID: TransferOrder] = [:]
    /// Also contains removed ones.
    private var queue: [TransferOrder.ID] = []
    private var first = 0

    var isEmpty: Bool { orders.isEmpty }

    mutating func append(_ order: TransferOrder) {
        orders[order.id] = order
        queue.append(order.id)
    }

    mutating func remove(_ id: TransferOrder.ID) -> TransferOrder? {
        orders.removeValue(forKey: id)
    }

    mutating func popFirst() -> TransferOrder? {
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
