package import Foundation
import TransferCore

/// Numbers events and hands them to any number of subscribers, each with a bounded buffer of its own: a slow one never slows the queue.
package final class EventHub: Sendable {
    private struct Subscriber: Sendable {
        weak let buffer: EventBuffer?
    }

    private struct State: Sendable {
        var revision: UInt64 = 0
        var isFinished = false
        var subscribers: [Subscriber] = []
    }

    private let state = Locked(State())
    private let capacity: Int

    /// - Parameter capacity: How many events are kept for a subscriber that does not take them.
    package init(capacity: Int = 4_096) {
        self.capacity = capacity
    }

    package func subscribe() -> QueueEvents {
        let buffer = EventBuffer(capacity: capacity)
        let isFinished = state.withLock { state in
            if !state.isFinished { state.subscribers.append(Subscriber(buffer: buffer)) }
            return state.isFinished
        }
        if isFinished { buffer.finish() }
        return QueueEvents(buffer: buffer)
    }

    package func publish(_ kinds: [QueueEvent.Kind], at time: Date) {
        guard !kinds.isEmpty else { return }
        state.withLock { state in
            state.subscribers.removeAll { $0.buffer == nil }
            for kind in kinds {
                var event = QueueEvent(revision: state.revision, time: time, kind: kind)
                if !event.isProgress {
                    state.revision += 1
                    event.revision = state.revision
                }
                for subscriber in state.subscribers { subscriber.buffer?.push(event) }
            }
        }
    }

    package func finish() {
        let subscribers = state.withLock { state in
            state.isFinished = true
            defer { state.subscribers = [] }
            return state.subscribers
        }
        for subscriber in subscribers { subscriber.buffer?.finish() }
    }
}
