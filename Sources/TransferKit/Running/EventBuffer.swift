import TransferCore

/// The events that one subscriber has yet to take.
final class EventBuffer: Sendable {
    private struct State {
        var events: [QueueEvent] = []
        var head = 0
        var waiter: CheckedContinuation<QueueEvent?, Never>?
        /// The first event that there was no room for.
        var missedFrom: UInt64?
        var isFinished = false

        var count: Int { events.count - head }

        mutating func pop() -> QueueEvent? {
            guard head < events.count else { return nil }
            defer {
                head += 1
                if head == events.count || head > 1_024 {
                    events.removeFirst(head)
                    head = 0
                }
            }
            return events[head]
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
    }

    func push(_ event: QueueEvent) {
        let waiter: CheckedContinuation<QueueEvent?, Never>? = state.withLock { state in
            guard !state.isFinished else { return nil }
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            if event.isProgress {
                // The newer figures of a session replace those that were not taken yet.
                if let last = state.events.indices.last, last >= state.head, state.events[last].isProgress,
                    state.events[last].session == event.session
                {
                    state.events[last] = event
                } else if state.count < capacity {
                    state.events.append(event)
                }
                return nil
            }
            // Room for the gap and the event after it.
            guard state.count < capacity - 1 else {
                if state.missedFrom == nil { state.missedFrom = event.revision }
                return nil
            }
            if let from = state.missedFrom {
                state.missedFrom = nil
                state.events.append(
                    QueueEvent(revision: event.revision - 1, time: event.time, kind: .gap(from: from, to: event.revision - 1)))
            }
            state.events.append(event)
            return nil
        }
        waiter?.resume(returning: event)
    }

    func finish() {
        let waiter: CheckedContinuation<QueueEvent?, Never>? = state.withLock { state in
            state.isFinished = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    /// The next event; nil at the end, or when the task is cancelled.
    func next() async -> QueueEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let event: QueueEvent?? = state.withLock { state in
                    if let event = state.pop() { return .some(event) }
                    if state.isFinished || Task.isCancelled { return .some(nil) }
                    state.waiter = continuation
                    return nil
                }
                if let event { continuation.resume(returning: event) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(returning: nil)
        }
    }
}
