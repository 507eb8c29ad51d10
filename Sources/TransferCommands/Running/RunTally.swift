import TransferKit

/// Counts the outcomes of the sessions in a run.
struct RunTally: Sendable {
    private(set) var completed = 0
    /// The number of completed files.
    private(set) var files = 0
    /// The size of the completed files in bytes, including bytes that earlier runs transferred.
    private(set) var bytes: Int64 = 0
    private(set) var failed: Set<SessionID> = []
    /// Sessions held after they had started.
    private(set) var held: Set<SessionID> = []
    /// Whether events were missed, so that the counts may be incomplete.
    private(set) var hasGap = false
    /// The time during which at least one session was active and not paused.
    private(set) var busyTime = BusyTime()
    /// Started sessions that have not ended.
    private var started: Set<SessionID> = []

    /// Counts outcomes until the sequence of events ends.
    init(counting events: QueueEvents) async {
        for await event in events {
            busyTime.count(event)
            switch event.kind {
            case .itemCompleted(_, _, let receipt):
                files += 1
                let (sum, isTooLarge) = bytes.addingReportingOverflow(max(0, receipt.bytes))
                bytes = isTooLarge ? .max : sum
            case .completed(let id):
                completed += 1
                started.remove(id)
            case .failed(let id, _):
                failed.insert(id)
                started.remove(id)
            case .didActivate(let id), .didStartRunning(let id):
                failed.remove(id)
                held.remove(id)
                started.insert(id)
            case .changed(let ids, .held): held.formUnion(started.intersection(ids))
            case .changed(let ids, _): held.subtract(ids)
            case .removed(let ids, _), .cancelled(let ids):
                // The user ended these sessions, so they are neither failed nor held.
                failed.subtract(ids)
                held.subtract(ids)
                started.subtract(ids)
            case .gap: hasGap = true
            default: continue
            }
        }
    }
}
