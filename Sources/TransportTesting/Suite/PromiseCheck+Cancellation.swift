import TransferCore

extension PromiseCheck {
    func cancelledAttemptEnds() async throws {
        let (source, _) = try makeSource(Self.largeSize)
        let recorder = AttemptRecorder(allowance: 100_000)
        let held = start(source, as: try makePath(), recorder)
        try await held.waitUntilHeld(by: recorder, within: deadline, of: self)
        held.task.cancel()
        try await requireCancelled(held, "After a cancellation half-way")

        let early = start(source, as: try makePath(), AttemptRecorder(allowance: 0))
        early.task.cancel()
        try await requireCancelled(early, "After a cancellation at its start")
    }

    func requireCancelled(_ attempt: RunningAttempt, _ situation: String) async throws {
        do {
            _ = try await attempt.value(within: deadline, of: self)
        } catch is CancellationError {
            return
        } catch let violation as PromiseViolation {
            throw violation
        } catch {
            throw violation("\(situation), the attempt threw \(type(of: error)): \(error)")
        }
        throw violation("\(situation), the attempt returned a receipt.")
    }
}
