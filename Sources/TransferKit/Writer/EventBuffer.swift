import Foundation
import Locking
import TransferCore

/// The pending events of one subscriber, in bounded memory.
final class EventBuffer: Sendable {
    private struct State {
        var events: [QueueEvent] = []
        var head = 0
        /// The total cost of the pending events.
        var cost = 0
        var waiters: [(id: Int, continuation: CheckedContinuation<QueueEvent?, Never>)] = []
        var nextWaiter = 0
        /// The range of events that were dropped because the buffer was full; nil if none was dropped since the last gap.
        var missed: ClosedRange<UInt64>?
        var isFinished = false

        /// Removes and returns the next event; nil if no event is pending. If events were dropped, returns a gap in their place.
        mutating func pop(at time: Date) -> QueueEvent? {
            guard head < events.count else { return takeGap(at: time) }
            defer {
                head += 1
                if head == events.count || head > 1_024 {
                    events.removeFirst(head)
                    head = 0
                }
            }
            cost -= events[head].cost
            return events[head]
        }

        mutating func takeGap(at time: Date) -> QueueEvent? {
            guard let missed else { return nil }
            self.missed = nil
            return .gap(missed, at: time)
        }

        mutating func append(_ event: QueueEvent) {
            events.append(event)
            cost += event.cost
        }

        /// Adds an unstored event, which has no number of its own. If the buffer is full, or a gap is pending (`missed`), drops the event. The
        /// loss can't be reported as a gap, because a gap is a range of event numbers.
        mutating func appendUnnumbered(_ event: QueueEvent, capacity: Int) {
            if event.isProgress {
                // Newer progress replaces pending progress.
                for index in events[head...].indices.reversed() {
                    guard events[index].isProgress else { break }
                    guard event.replaces(events[index]) else { continue }
                    events[index] = event
                    return
                }
            }
            if missed == nil, cost < capacity { append(event) }
        }

        /// Adds a unit: one event, or all events from `willChangeQueue` to `didChangeQueue`. If the unit does not fit, drops all its events and
        /// records a gap.
        mutating func append(_ unit: ArraySlice<QueueEvent>, capacity: Int) {
            guard let first = unit.first, let last = unit.last else { return }
            // Leaves room for a gap in addition to the unit. A unit that exceeds the capacity is added if no other event is pending.
            guard head == events.count || cost + unit.reduce(0, { $0 + $1.cost }) < capacity else {
                missed = (missed?.lowerBound ?? first.revision)...last.revision
                return
            }
            if let gap = takeGap(at: first.time) { append(gap) }
            for event in unit { append(event) }
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    /// - Parameter capacity: The number of events to keep. An event counts as one event, plus one for each 256 sessions that it names.
    init(capacity: Int) {
        self.capacity = capacity
    }

    func push(_ unit: ArraySlice<QueueEvent>) {
        change { $0.append(unit, capacity: capacity) }
    }

    func pushUnnumbered(_ event: QueueEvent) {
        change { $0.appendUnnumbered(event, capacity: capacity) }
    }

    private func change(_ body: (inout State) -> Void) {
        let deliveries: [(CheckedContinuation<QueueEvent?, Never>, QueueEvent)] = state.withLock { state in
            guard !state.isFinished else { return [] }
            body(&state)
            var deliveries: [(CheckedContinuation<QueueEvent?, Never>, QueueEvent)] = []
            while !state.waiters.isEmpty, let event = state.pop(at: Date()) {
                deliveries.append((state.waiters.removeFirst().continuation, event))
            }
            return deliveries
        }
        for (continuation, event) in deliveries { continuation.resume(returning: event) }
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

extension QueueEvent {
    /// The cost of an event in a buffer: 1, plus 1 for each 256 session IDs. At 16 bytes each, 256 session IDs fill a page of memory.
    fileprivate var cost: Int {
        switch kind {
        case .added(let ids, _), .removed(let ids, _), .changed(let ids, _), .cancelled(let ids), .draftsRemoved(let ids):
            1 + ids.count / 256
        default: 1
        }
    }

    static func gap(_ missing: ClosedRange<UInt64>, at time: Date) -> QueueEvent {
        QueueEvent(revision: missing.upperBound, time: time, kind: .gap(from: missing.lowerBound, to: missing.upperBound))
    }
}
