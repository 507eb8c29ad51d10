import TransferCore

struct RunningAttempt: Sendable {
    let task: Task<TransferReceipt, any Error>

    /// Returns the receipt, or throws the transport's error.
    ///
    /// - Throws: A violation if the attempt neither returns nor throws within the deadline. In this case, the method cancels the attempt,
    ///   but does not wait for its end. Also throws a `CancellationError` if the caller's task is cancelled.
    func value<Fixture>(within deadline: Duration, of check: PromiseCheck<Fixture>) async throws -> TransferReceipt {
        try await waitUntilReached(Latch(), within: deadline, of: check, "The attempt did not end")
        return try await task.value
    }

    /// Waits until the attempt has used up its allowance and requests more, or has ended.
    ///
    /// - Throws: A violation if neither happens within the deadline.
    func waitUntilHeld<Fixture>(by recorder: AttemptRecorder, within deadline: Duration, of check: PromiseCheck<Fixture>) async throws {
        try await waitUntilReached(recorder.exhausted, within: deadline, of: check)
    }

    /// Waits until a latch is open, or the attempt has ended.
    ///
    /// - Throws: A violation if neither happens within the deadline.
    func waitUntilReached<Fixture>(
        _ latch: Latch, within deadline: Duration, of check: PromiseCheck<Fixture>,
        _ observation: String = "The attempt neither ended nor reached the expected point"
    ) async throws {
        Task { [task] in
            _ = await task.result
            latch.open()
        }
        let alarm = Task {
            try await Task.sleep(for: deadline)
            latch.open()
            return true
        }
        try await latch.wait()
        alarm.cancel()
        if case .success(true) = await alarm.result {
            task.cancel()
            throw check.violation("\(observation) within \(deadline).")
        }
    }
}
