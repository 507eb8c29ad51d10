/// Shares the result of a read among requests that arrive at about the same time. Many open pages then cause no more reads than one page.
actor SnapshotCache {
    private struct Snapshot {
        let generation: Int
        let time: ContinuousClock.Instant
        let task: Task<any Sendable, any Error>
    }

    private let age: Duration
    private var snapshots: [String: Snapshot] = [:]
    private var generation = 0

    /// - Parameter age: The time after which a result is no longer shared.
    init(age: Duration) { self.age = age }

    /// Makes later requests read from the queue again, because the queue has changed.
    func invalidate() { generation += 1 }

    /// Returns a recent result for a key, or else the result of `read`. All results for one key must have the same type.
    ///
    /// - Throws: The error of the read.
    func value<Value: Sendable>(
        for key: String, read: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let now = ContinuousClock.now
        if let snapshot = snapshots[key], snapshot.generation == generation, now - snapshot.time < age,
            let value = try await snapshot.task.value as? Value
        {
            return value
        }
        if snapshots.count >= 256 { snapshots.removeAll() }
        let task = Task { try await read() as any Sendable }
        snapshots[key] = Snapshot(generation: generation, time: now, task: task)
        guard let value = try await task.value as? Value else { throw CancellationError() }
        return value
    }
}
