package import Foundation
import Locking
import TransferCore

/// Numbers events and distributes them to any number of subscribers. Each subscriber has its own bounded buffer, so a slow subscriber never slows the
/// queue.
///
/// The writer calls ``number(_:at:)``, stores the events with the change that they report, and calls ``publish(_:)`` once the change is durable.
/// If the database refuses the change, the writer does not publish the events, and reuses their numbers.
package final class EventHub: Sendable {
    private struct Subscriber: Sendable {
        weak let buffer: EventBuffer?
    }

    private struct State: Sendable {
        var revision: UInt64 = 0
        var isFinished = false
        var subscribers: [Subscriber] = []
        /// The subscribers of single sessions. An event wakes only the subscribers of its own sessions, because each of 100,000 sessions
        /// can have a subscriber.
        var sessionSubscribers: [SessionID: [Subscriber]] = [:]
        /// The context values of running sessions, for the sessions' events. A session's value stays until the session has released its slot.
        var contexts: [SessionID: Data] = [:]
        /// If at least this number of sessions have subscribers, the next subscription to a session removes the released subscribers.
        var nextCleanup = 64

        /// Adds the contexts of running sessions to events. Forgets the contexts of sessions that have released their slots.
        mutating func addContexts(to events: [QueueEvent]) -> [QueueEvent] {
            guard !contexts.isEmpty else { return events }
            var events = events
            for index in events.indices {
                events[index].context = events[index].session.flatMap { contexts[$0] }
            }
            for event in events {
                if case .didDeactivate(let id) = event.kind { contexts[id] = nil }
            }
            return events
        }

        func pushToSessions(_ event: QueueEvent) {
            for (offset, id) in event.sessions.enumerated() {
                guard let subscribers = sessionSubscribers[id] else { continue }
                var narrowed = event
                narrowed.kind.narrow(to: offset)
                for subscriber in subscribers { subscriber.buffer?.push([narrowed]) }
            }
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    /// - Parameter capacity: The number of events to keep for a slow subscriber, at least 4.
    package init(capacity: Int = 4_096) {
        self.capacity = max(4, capacity)
    }

    deinit { finish() }

    /// The number of the last published event.
    package var revision: UInt64 { state.withLock { $0.revision } }

    /// Continues the numbering of an earlier process. Called before the first event is published.
    package func begin(after revision: UInt64) {
        state.withLock { $0.revision = revision }
    }

    // MARK: Subscribers

    package func subscribe() -> QueueEvents {
        QueueEvents(buffer: newBuffer { $0.subscribers.append($1) }.buffer)
    }

    /// Subscribes to all events after a revision. Past events are read from the change log, within the limit for reads by clients.
    package func subscribe(after revision: UInt64, in log: QueueStore, _ reads: ClientReads) -> QueueEvents {
        let (buffer, publishedRevision) = newBuffer { $0.subscribers.append($1) }
        return QueueEvents(
            buffer: buffer, replay: EventReplay(log: log, reads: reads, after: revision, publishedRevision: publishedRevision))
    }

    /// Subscribes to the events of one session. An event that names several sessions is delivered as an event that names only this session.
    package func subscribe(to id: SessionID) -> QueueEvents {
        let (buffer, _) = newBuffer { state, subscriber in
            if state.sessionSubscribers.count >= state.nextCleanup {
                state.sessionSubscribers = state.sessionSubscribers.compactMapValues { subscribers in
                    let present = subscribers.filter { $0.buffer != nil }
                    return present.isEmpty ? nil : present
                }
                state.nextCleanup = max(64, 2 * state.sessionSubscribers.count)
            }
            state.sessionSubscribers[id, default: []].append(subscriber)
        }
        return QueueEvents(buffer: buffer)
    }

    private func newBuffer(_ add: (inout State, Subscriber) -> Void) -> (buffer: EventBuffer, revision: UInt64) {
        let buffer = EventBuffer(capacity: capacity)
        let (revision, isFinished) = state.withLock { state in
            if !state.isFinished { add(&state, Subscriber(buffer: buffer)) }
            return (state.revision, state.isFinished)
        }
        if isFinished { buffer.finish() }
        return (buffer, revision)
    }

    // MARK: Events

    /// Sets the context value in later events of a running session; nil if the session has no context.
    package func set(_ context: Data?, of id: SessionID) {
        state.withLock { $0.contexts[id] = context }
    }

    /// Numbers events that are about to be stored, without publishing them.
    package func number(_ kinds: [QueueEvent.Kind], at time: Date) -> [QueueEvent] {
        let last = revision
        return kinds.enumerated().map { QueueEvent(revision: last + UInt64($0.offset) + 1, time: time, kind: $0.element) }
    }

    /// Publishes numbered events that are durable.
    package func publish(_ events: [QueueEvent]) {
        guard let last = events.last else { return }
        state.withLock { state in
            state.revision = last.revision
            state.subscribers.removeAll { $0.buffer == nil }
            var rest = state.addContexts(to: events)[...]
            while let first = rest.first {
                let unit: ArraySlice<QueueEvent>
                if case .willChangeQueue = first.kind { unit = rest.throughEndOfChange } else { unit = rest.prefix(1) }
                for subscriber in state.subscribers { subscriber.buffer?.push(unit) }
                if !state.sessionSubscribers.isEmpty { for event in unit { state.pushToSessions(event) } }
                rest = rest.dropFirst(unit.count)
            }
        }
    }

    /// Publishes an event that is never stored and has no number of its own, such as statistics or a failure of the database.
    package func publishUnnumbered(_ kind: QueueEvent.Kind, at time: Date) {
        state.withLock { state in
            var event = QueueEvent(revision: state.revision, time: time, kind: kind)
            event.context = event.session.flatMap { state.contexts[$0] }
            for subscriber in state.subscribers { subscriber.buffer?.pushUnnumbered(event) }
            guard let id = event.session else { return }
            for subscriber in state.sessionSubscribers[id] ?? [] { subscriber.buffer?.pushUnnumbered(event) }
        }
    }

    /// Ends all subscriptions. Subscribers still get the events in their buffers.
    package func finish() {
        let subscribers = state.withLock { state in
            state.isFinished = true
            defer {
                state.subscribers = []
                state.sessionSubscribers = [:]
            }
            return state.subscribers + state.sessionSubscribers.values.joined()
        }
        for subscriber in subscribers { subscriber.buffer?.finish() }
    }
}

extension ArraySlice<QueueEvent> {
    /// The events of one change of the order: from the first element, which must be a `willChangeQueue`, through the next `didChangeQueue`.
    fileprivate var throughEndOfChange: ArraySlice<QueueEvent> {
        let end = firstIndex { if case .didChangeQueue = $0.kind { true } else { false } }
        return end.map { self[...$0] } ?? prefix(1)
    }
}

extension QueueEvent.Kind {
    /// Reduces an event that names several sessions to the session at an offset.
    fileprivate mutating func narrow(to offset: Int) {
        switch self {
        case .added(let ids, let index) where ids.count > 1: self = .added([ids[offset]], index: index + offset)
        case .removed(let ids, let indices) where ids.count > 1: self = .removed([ids[offset]], indices: [indices[offset]])
        case .changed(let ids, let state) where ids.count > 1: self = .changed([ids[offset]], state)
        case .cancelled(let ids) where ids.count > 1: self = .cancelled([ids[offset]])
        case .draftsRemoved(let ids) where ids.count > 1: self = .draftsRemoved([ids[offset]])
        default: break
        }
    }
}
