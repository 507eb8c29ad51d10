import TransferCore
import TransportTesting

/// A transport that saves no checkpoints, so each attempt restarts its upload.
struct ForgetfulTransport: Transport {
    let memory: MemoryTransport

    var id: TransportID { memory.id }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let size = try attempt.source.size
        let forgetful = AttemptReporter(
            progress: { sent, _ in reporter.report(sent: sent, confirmed: 0) }, checkpoint: { _ in },
            allowance: { reporter.allowance(upTo: $0) })
        let receipt = try await memory.perform(attempt, reporting: forgetful)
        reporter.report(sent: size, confirmed: size)
        return receipt
    }

    func shutdown() async {}
}
