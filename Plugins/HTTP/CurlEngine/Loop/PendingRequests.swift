/// A first-in, first-out queue of requests that wait for a connection.
struct PendingRequests {
    private var requests: [PendingRequest.ID: PendingRequest] = [:]
    /// The IDs in the order of their arrival, including the IDs of removed requests.
    private var queue: [PendingRequest.ID] = []
    /// The index, in the queue, of the next ID that ``popFirst()`` examines.
    private var first = 0

    var isEmpty: Bool { requests.isEmpty }

    mutating func append(_ pending: PendingRequest) {
        requests[pending.id] = pending
        queue.append(pending.id)
    }

    mutating func remove(_ id: PendingRequest.ID) -> PendingRequest? {
        requests.removeValue(forKey: id)
    }

    mutating func popFirst() -> PendingRequest? {
        while first < queue.count {
            let pending = requests.removeValue(forKey: queue[first])
            first += 1
            if let pending { return pending }
        }
        queue.removeAll(keepingCapacity: true)
        first = 0
        return nil
    }
}
