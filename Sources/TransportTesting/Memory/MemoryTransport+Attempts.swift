import Locking
import TransferCore

extension MemoryTransport {
    /// All attempts so far, in the order in which they started.
    public var attempts: [MemoryAttempt] { state.withLock { $0.attempts } }

    /// The number of running attempts.
    public var runningCount: Int { state.withLock { $0.running } }

    /// The largest ``runningCount`` so far.
    public var peakRunningCount: Int { state.withLock { $0.peakRunning } }

    /// Whether ``shutdown()`` was called.
    public var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// Waits until `count` attempts have started since the transport was created.
    ///
    /// - Returns: All attempts that have started.
    /// - Throws: `CancellationError` if the task is cancelled first.
    @discardableResult
    public func attemptsStarted(_ count: Int) async throws -> [MemoryAttempt] {
        let latch = Latch()
        state.withLock { state in
            if state.attempts.count >= count {
                latch.open()
            } else {
                state.expectations.append((count: count, latch: latch))
            }
        }
        try await latch.wait()
        return attempts
    }

    func begin(_ attempt: FileAttempt, _ fault: MemoryFault?) -> Int {
        let (index, due) = state.withLock { state in
            let upload = attempt.checkpoint.map { String(decoding: $0.data, as: UTF8.self) }
            if fault == .forget, let upload { state.store.discard(upload) }
            state.attempts.append(
                MemoryAttempt(
                    transferID: attempt.transferID, number: attempt.number, path: attempt.remotePath, endpoint: attempt.endpoint,
                    checkpoint: attempt.checkpoint, startOffset: upload.flatMap { state.store.size(of: $0) } ?? 0))
            state.running += 1
            state.peakRunning = max(state.peakRunning, state.running)
            let count = state.attempts.count
            let due = state.expectations.filter { $0.count <= count }
            state.expectations.removeAll { $0.count <= count }
            return (count - 1, due)
        }
        for expectation in due { expectation.latch.open() }
        return index
    }

    func end(_ index: Int, _ outcome: MemoryAttempt.Outcome) {
        state.withLock { state in
            state.attempts[index].outcome = outcome
            state.running -= 1
        }
    }
}
