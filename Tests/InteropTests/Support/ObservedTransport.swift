import TransferCore

/// Forwards calls to a transport, and notifies the test of attempts, failures and removals of unfinished uploads.
struct ObservedTransport<Base: Transport & PartialDiscarding>: Transport, PartialDiscarding {
    let base: Base
    var willBegin: @Sendable (FileAttempt) -> Void = { _ in }
    var didFail: @Sendable (FileAttempt) -> Void = { _ in }
    var didRemove: @Sendable (Checkpoint) -> Void = { _ in }

    var id: TransportID { base.id }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        willBegin(attempt)
        do {
            return try await base.perform(attempt, reporting: reporter)
        } catch {
            didFail(attempt)
            throw error
        }
    }

    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        try await base.discard(checkpoint, at: endpoint, credentials: credentials)
        didRemove(checkpoint)
    }

    func shutdown() async { await base.shutdown() }
}
