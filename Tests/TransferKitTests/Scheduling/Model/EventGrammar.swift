import Foundation
import TransferKit

/// A check of the order of events. Receives the events like a delegate, and reports invalid sequences.
struct EventGrammar {
    private struct Lifecycle {
        var isActive = false
        var isRunning = false
        var hasConnected = false
        var hasAnnouncedStop = false
        var endings = 0
    }

    private var lifecycles: [SessionID: Lifecycle] = [:]
    private var order: [SessionID] = []
    private var drafts: [SessionID] = []
    private var revision: UInt64?
    private var lastRevision: UInt64 = 0
    private var changes = 0

    /// Resets the sessions for a new process, which does not repeat earlier events. A session that keeps its slot, such as a paused one,
    /// counts as active.
    mutating func restart(_ observation: Observation) {
        lifecycles = [:]
        for session in observation.sessions { lifecycles[session.id] = Lifecycle(isActive: session.holdsSlot) }
    }

    /// Returns the first error in these events, or in the state after the events; nil without an error.
    mutating func check(_ events: [QueueEvent.Kind], _ observation: Observation) -> String? {
        for event in events {
            if let problem = checkOrder(event) ?? checkLifecycle(event) { return "\(problem) (\(event))" }
        }
        if order + drafts != observation.sessions.map(\.id) { return "the events describe a different order, or other drafts" }
        if lastRevision != observation.orderRevision { return "the events carry a different order revision" }
        for session in observation.sessions {
            let lifecycle = lifecycles[session.id] ?? Lifecycle()
            if lifecycle.isActive != session.holdsSlot {
                return "\(session.line) is \(lifecycle.isActive ? "active" : "inactive") according to the events, but not in the state"
            }
            if lifecycle.isRunning != session.hasRun {
                return "\(session.line) has \(lifecycle.isRunning ? "a" : "no") run according to the events, but not in the state"
            }
        }
        return nil
    }

    private mutating func checkOrder(_ event: QueueEvent.Kind) -> String? {
        switch event {
        case .willChangeQueue(let number):
            guard revision == nil, number == lastRevision + 1 else {
                return "a change begins inside another change or with a wrong revision"
            }
            revision = number
            changes = 0
        case .didChangeQueue(let number):
            guard revision == number, changes == 1 else {
                return "a change ends with a wrong revision, or does not consist of exactly one event"
            }
            revision = nil
            lastRevision = number
        case .added(let ids, let index):
            changes += 1
            order.insert(contentsOf: ids, at: index)
            drafts.removeAll { ids.contains($0) }
        case .removed(let ids, let indices):
            changes += 1
            guard indices == indices.sorted(), indices.map({ order[$0] }) == ids else { return "the indices belong to other sessions" }
            order.removeAll { ids.contains($0) }
            for id in ids { lifecycles[id] = nil }
        case .moved(let id, let from, let to):
            changes += 1
            guard order[from] == id else { return "the index belongs to another session" }
            order.remove(at: from)
            order.insert(id, at: to)
        case .changed(let ids, .draft): drafts += ids
        case .draftsRemoved(let ids):
            guard ids.allSatisfy(drafts.contains) else { return "these sessions are not drafts" }
            drafts.removeAll { ids.contains($0) }
        default: break
        }
        return nil
    }

    private mutating func checkLifecycle(_ event: QueueEvent.Kind) -> String? {
        guard let id = QueueEvent(revision: 0, time: DualInstant.start.date, kind: event).session else { return nil }
        var lifecycle = lifecycles[id] ?? Lifecycle()
        defer { if order.contains(id) { lifecycles[id] = lifecycle } }
        switch event {
        case .willActivate: if lifecycle.isActive { return "already active" }
        case .didActivate: lifecycle = Lifecycle(isActive: true)
        case .willStartRunning:
            guard lifecycle.isActive, !lifecycle.isRunning else { return "can't start to run" }
            lifecycle.isRunning = true
            lifecycle.hasConnected = false
            lifecycle.hasAnnouncedStop = false
        case .didStartRunning:
            guard lifecycle.isRunning, !lifecycle.hasConnected else { return "can't have started" }
            lifecycle.hasConnected = true
        case .willStopRunning:
            guard lifecycle.hasConnected, !lifecycle.hasAnnouncedStop else { return "can't announce a stop" }
            lifecycle.hasAnnouncedStop = true
        case .didStopRunning:
            guard lifecycle.isRunning, lifecycle.hasConnected == lifecycle.hasAnnouncedStop else { return "can't have stopped" }
            lifecycle.isRunning = false
            lifecycle.hasConnected = false
        case .willDeactivate: if !lifecycle.isActive || lifecycle.isRunning { return "can't release its slot" }
        case .didDeactivate: lifecycle.isActive = false
        case .completed, .failed:
            lifecycle.endings += 1
            if lifecycle.isActive { return "ended while active" }
            if lifecycle.endings > 1 { return "ended more than once" }
        default: break
        }
        return nil
    }
}
