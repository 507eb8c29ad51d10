import TransferCore
import TransferKit

/// A delegate that records its events, and counts calls that overlap.
actor RecordingDelegate: TransferQueueDelegate {
    private(set) var kinds: [QueueEvent.Kind] = []
    private let decision: CredentialsDecision
    private var isInside = false
    private(set) var overlaps = 0
    private(set) var credentialsRequests = 0

    init(decision: CredentialsDecision = .later) {
        self.decision = decision
    }

    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
        await enter()
        kinds.append(event.kind)
    }

    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsDecision {
        await enter()
        credentialsRequests += 1
        return decision
    }

    /// Detects overlapping calls. Suspends, to give other calls a chance to overlap.
    private func enter() async {
        if isInside { overlaps += 1 }
        isInside = true
        await Task.yield()
        isInside = false
    }
}
