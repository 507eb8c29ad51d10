package import Foundation
package import TransferKit

/// The time during which at least one session of a run was active and not paused.
package struct BusyTime: Sendable {
    private var active: Set<SessionID> = []
    private var since: Date?
    private var total: TimeInterval = 0

    package init() {}

    /// The time in seconds, up to the last event that ``count(_:)`` received.
    package private(set) var seconds: TimeInterval = 0

    /// Updates the time after an event. Call this method with all events of a run, in their order.
    package mutating func count(_ event: QueueEvent) {
        switch event.kind {
        case .didActivate(let id), .didStartRunning(let id): active.insert(id)
        case .didDeactivate(let id), .completed(let id), .failed(let id, _): active.remove(id)
        case .changed(let ids, _), .removed(let ids, _), .cancelled(let ids): active.subtract(ids)
        default: break
        }
        // The clock may have been set back between two events.
        let current = since.map { max(0, event.time.timeIntervalSince($0)) } ?? 0
        seconds = total + current
        if active.isEmpty {
            total = seconds
            since = nil
        } else if since == nil {
            since = event.time
        }
    }
}
