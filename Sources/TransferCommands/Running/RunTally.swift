import TransferKit

/// What became of the sessions that this process ran.
struct RunTally: Sendable {
    private(set) var completed = 0
    private(set) var failed: Set<SessionID> = []
    /// Those that were set aside after they had begun.
    private(set) var held: Set<SessionID> = []
    private(set) var hasGap = false
    /// Those that have begun and not ended.
    private var begun: Set<SessionID> = []

    /// Counts until the events end.
    init(counting events: QueueEvents) async {
        for await event in events {
            switch event.kind {
            case .completed(let id):
                completed += 1
                begun.remove(id)
            case .failed(let id, _):
                failed.insert(id)
                begun.remove(id)
            case .didActivate(let id), .didStartRunning(let id):
                failed.remove(id)
                held.remove(id)
                begun.insert(id)
            case .changed(let ids, .held): held.formUnion(begun.intersection(ids))
            case .changed(let ids, _): held.subtract(ids)
            case .removed(let ids, _), .cancelled(let ids):
                // Somebody decided that they are not to arrive.
                failed.subtract(ids)
                held.subtract(ids)
                begun.subtract(ids)
            case .gap: hasGap = true
            default: continue
            }
        }
    }
}
