import TransferCore

/// An attempt on its way.
struct RunningAttempt: Sendable {
    let task: Task<TransferReceipt, any Error>

    /// The receipt, or the transport's error.
    ///
    /// - Throws: A violation if the attempt neither returns nor throws within the deadline; it is then left to itself, as it may never end.
    func value<Fixture>(within deadline: Duration, of check: PromiseCheck<Fixture>) async throws -> TransferReceipt {
        let isOver = Latch()
        Task { [task] in
            _ = await task.result
            isOver.open()
        }
        let alarm = Task {
            try await Task.sleep(for: deadline)
            isOver.open()
            return true
        }
        try await isOver.wait()
        alarm.cancel()
        if case .success(true) = await alarm.result {
            task.cancel()
            throw check.violation("The attempt did not end within \(deadline).")
        }
        return try await task.value
    }

    /// Returns once the attempt is held back by its allowance.
    ///
    /// - Throws: A violation if it ends before, or does neither within the deadline.
    func isHeld<Fixture>(by recorder: AttemptRecorder, within deadline: Duration, of check: PromiseCheck<Fixture>) async throws {
        Task { [task] in
            _ = await task.result
            recorder.exhausted.open()
        }
        let alarm = Task {
            try await Task.sleep(for: deadline)
            recorder.exhausted.open()
            return true
        }
        try await recorder.exhausted.wait()
        alarm.cancel()
        if case .success(true) = await alarm.result {
            task.cancel()
            throw check.violation("The attempt neither ended nor asked for an allowance within \(deadline).")
        }
    }
}
