import Foundation
import TransferKit

/// Reads the events like a delegate, and reports invalid sequences.
struct EventGrammar {
    private struct Life {
        var isActive = false
        var isRunning = false
        var hasConnected = false
        var hasAnnouncedStop = false
        var endings = 0
    }

    private var lives: [SessionID: Life] = [:]
    private var order: [SessionID] = []
    private var revision: UInt64?
    private var lastRevision: UInt64 = 0
    private var changes = 0

    /// A new process reports no earlier events. A paused session is active.
    mutating func restart(_ observation: Observation) {
        lives = [:]
        for session in observation.sessions { lives[session.id] = Life(isActive: session.holdsSlot) }
    }

    /// What is wrong with these events or the state after them; nil if nothing is.
    mutating func take(_ events: [QueueEvent.Kind], _ observation: Observation) -> String? {
        for event in events {
            if let what = takeOrder(event) ?? takeLife(event) { return "\(what) (\(event))" }
        }
        if order != observation.sessions.map(\.id) { return "the events describe a different order" }
        if lastRevision != observation.orderRevision { return "the events carry a different order revision" }
        for session in observation.sessions {
            let life = lives[session.id] ?? Life()
            if life.isActive != session.holdsSlot { return "\(session.line) is active: \(life.isActive)" }
            if life.isRunning != session.hasRun { return "\(session.line) runs according to the events: \(life.isRunning)" }
        }
        return nil
    }

    private mutating func takeOrder(_ event: QueueEvent.Kind) -> String? {
        switch event {
        case .willChangeQueue(let number):
            guard revision == nil, number == lastRevision + 1 else { return "a change that begins wrongly" }
            revision = number
            changes = 0
        case .didChangeQueue(let number):
            guard revision == number, changes == 1 else { return "a change that ends wrongly" }
            revision = nil
            lastRevision = number
        case .added(let ids, let index):
            changes += 1
            order.insert(contentsOf: ids, at: index)
        case .removed(let ids, let indices):
            changes += 1
            guard indices == indices.sorted(), indices.map({ order[$0] }) == ids else { return "indices of others" }
            order.removeAll { ids.contains($0) }
            for id in ids { lives[id] = nil }
        case .moved(let id, let from, let to):
            changes += 1
            guard order[from] == id else { return "an index of another one" }
            order.remove(at: from)
            order.insert(id, at: to)
        default: break
        }
        return nil
    }

    private mutating func takeLife(_ event: QueueEvent.Kind) -> String? {
        guard let id = QueueEvent(revision: 0, time: DualInstant.start.date, kind: event).session else { return nil }
        var life = lives[id] ?? Life()
        defer { if order.contains(id) { lives[id] = life } }
        switch event {
        case .willActivate: if life.isActive { return "active already" }
        case .didActivate: life = Life(isActive: true)
        case .willStartRunning:
            guard life.isActive, !life.isRunning else { return "can't start to run" }
            life.isRunning = true
            life.hasConnected = false
            life.hasAnnouncedStop = false
        case .didStartRunning:
            guard life.isRunning, !life.hasConnected else { return "can't have started" }
            life.hasConnected = true
        case .willStopRunning:
            guard life.hasConnected, !life.hasAnnouncedStop else { return "can't be about to stop" }
            life.hasAnnouncedStop = true
        case .didStopRunning:
            guard life.isRunning, life.hasConnected == life.hasAnnouncedStop else { return "can't have stopped" }
            life.isRunning = false
            life.hasConnected = false
        case .willDeactivate: if !life.isActive || life.isRunning { return "can't give a slot up" }
        case .didDeactivate: life.isActive = false
        case .completed, .failed:
            life.endings += 1
            if life.isActive || life.endings > 1 { return "more than one end" }
        default: break
        }
        return nil
    }
}
