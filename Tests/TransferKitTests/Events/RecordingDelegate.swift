import TransferCore
import TransferKit

/// A delegate that records its events, and counts calls that overlap.
actor RecordingDelegate: TransferQueueDelegate {
    private(set) var kinds: [QueueEvent.Kind] = []
    private let answer: CredentialsAnswer
    private var isInside = false
    private(set) var overlaps = 0
    /// The number of requests for credentials.
    private(set) var questions = 0

    init(answer: CredentialsAnswer = .later) {
        self.answer = answer
    }

    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
        await enter()
        kinds.append(event.kind)
    }

    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) async -> CredentialsAnswer {
        await enter()
        questions += 1
        return answer
    }

    /// Detects overlapping calls. Suspends, to give other calls a chance to overlap.
    private func enter() async {
        if isInside { overlaps += 1 }
        isInside = true
        await Task.yield()
        isInside = false
    }
}
