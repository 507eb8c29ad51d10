import Foundation
import TransferCore

/// The events that one subscriber has yet to take.
final class EventBuffer: Sendable {
    private struct State {
        var events: [QueueEvent] = []
        var head = 0
        var waiters: [(id: Int, continuation: CheckedContinuation<QueueEvent?, Never>)] = []
        var nextWaiter = 0
        /// The events that there was no room for.
        var missed: ClosedRange<UInt64>?
        var isFinished = false

        var count: Int { events.count - head }

        /// The next event; a gap where events are missing.
        mutating func pop(at time: Date) -> QueueEvent? {
            guard head < events.count else { return takeGap(at: time) }
            defer {
                head += 1
                if head == events.count || head > 1_024 {
                    events.removeFirst(head)
                    head = 0
                }
            }
            return events[head]
        }

        mutating func takeGap(at time: Date) -> QueueEvent? {
            guard let missed else { return nil }
            self.missed = nil
            return QueueEvent(revision: missed.upperBound, time: time, kind: .gap(from: missed.lowerBound, to: missed.upperBound))
        }

        mutating func append(_ event: QueueEvent, capacity: Int) {
            if event.isProgress {
                // The newer figures of a session replace those that were not taken yet.
                if let last = events.indices.last, last >= head, events[last].isProgress, events[last].session == event.session {
                    events[last] = event
                } else if count < capacity, missed == nil {
                    events.append(event)
                }
                return
            }
            // Room for the gap and the event after it.
            guard count < capacity - 1 else {
                missed = (missed?.lowerBound ?? event.revision)...event.revision
                return
            }
            if let gap = takeGap(at: event.time) { events.append(gap) }
            events.append(event)
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
    }

    func push(_ event: QueueEvent) {
        let delivery: (CheckedContinuation<QueueEvent?, Never>, QueueEvent)? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.append(event, capacity: capacity)
            guard !state.waiters.isEmpty, let next = state.pop(at: event.time) else { return nil }
            return (state.waiters.removeFirst().continuation, next)
        }
        delivery?.0.resume(returning: delivery?.1)
    }

    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }

    /// The next event; nil at the end, or when the task is cancelled.
    func next() async -> QueueEvent? {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let event: QueueEvent?? = state.withLock { state in
                    if let event = state.pop(at: Date()) { return .some(event) }
                    if state.isFinished || Task.isCancelled { return .some(nil) }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if let event { continuation.resume(returning: event) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume(returning: nil)
        }
    }
}
