import TransferKit

/// What became of the sessions that this process ran.
struct RunTally: Sendable {
    private(set) var completed = 0
    private(set) var failed: Set<SessionID> = []
    private(set) var hasGap = false

    /// Counts until the events end.
    init(counting events: QueueEvents) async {
        for await event in events {
            switch event.kind {
            case .completed: completed += 1
            case .failed(let id, _): failed.insert(id)
            case .didActivate(let id): failed.remove(id)
            case .removed(let ids, _), .cancelled(let ids): failed.subtract(ids)
            case .gap: hasGap = true
            default: continue
            }
        }
    }
}
