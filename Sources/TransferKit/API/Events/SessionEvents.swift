public import TransferCore

/// An element of the sequence ``TransferSession/events``.
public enum SessionEvent: Hashable, Sendable {
    /// The session's current state: the first element, and the first element after missed events. Omitted if the session no longer exists.
    case snapshot(SessionStatus)
    /// An event of the session. If the queue's event names several sessions, this event names only this session.
    case event(QueueEvent)
    /// The session has ended. No element follows.
    case ended(SessionEnd)
}

/// How a session ended.
public enum SessionEnd: Hashable, Sendable {
    /// Every item of the session is at its destination or was skipped.
    case completed
    /// The session failed.
    case failed(TransferError)
    /// The app cancelled the session.
    case cancelled
    /// The session is no longer in the queue: it was removed or quarantined.
    case removed
}

/// The events of one session for one consumer: the session's current state first, then the session's events, and finally how the session ended.
///
/// If a session is retried after its end, get a new sequence. If the queue shuts down or the iterating task is cancelled, the sequence ends
/// without ``SessionEvent/ended(_:)``. A slow consumer that misses events gets the session's current state instead.
public struct SessionEvents: AsyncSequence, Sendable {
    let id: SessionID
    let queue: TransferQueue
    let events: QueueEvents

    package init(id: SessionID, queue: TransferQueue, events: QueueEvents) {
        self.id = id
        self.queue = queue
        self.events = events
    }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        private let id: SessionID
        private let queue: TransferQueue
        private var events: QueueEvents.AsyncIterator
        private var needsSnapshot: Bool
        private var end: SessionEnd?
        private var hasEnded = false

        init(_ sequence: SessionEvents, needsSnapshot: Bool = true) {
            self.needsSnapshot = needsSnapshot
            id = sequence.id
            queue = sequence.queue
            events = sequence.events.makeAsyncIterator()
        }

        /// Waits for the next event; nil at the end.
        public mutating func next() async -> SessionEvent? {
            guard !hasEnded else { return nil }
            if end == nil, needsSnapshot, let status = await snapshot() { return .snapshot(status) }
            while end == nil {
                guard let event = await events.next() else { return nil }
                switch event.kind {
                case .gap: needsSnapshot = true
                case .completed: end = .completed
                case .failed(_, let error): end = .failed(error)
                case .cancelled: end = .cancelled
                case .removed, .draftsRemoved: end = .removed
                default: if !needsSnapshot { return .event(event) }
                }
                if end == nil, needsSnapshot, let status = await snapshot() { return .snapshot(status) }
            }
            hasEnded = true
            return end.map { .ended($0) }
        }

        /// Waits for the next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await next()
        }

        private mutating func snapshot() async -> SessionStatus? {
            do {
                let status = try await queue.status(of: id)
                needsSnapshot = false
                end = SessionEnd(status)
                return status
            } catch let error as QueueError where error.code == .noSuchSession {
                end = .removed
                return nil
            } catch {
                return nil
            }
        }
    }

    /// Creates an iterator. All iterators of one sequence share its events, so create only one iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(self)
    }
}

extension SessionEnd {
    init?(_ status: SessionStatus) {
        switch status.state {
        case .completed: self = .completed
        case .failed:
            self = .failed(
                status.error ?? TransferError(.permanent, .internalFailure, "The session \(status.id) failed without a reason."))
        case .cancelled: self = .cancelled
        case .waiting, .running, .paused, .held, .draft: return nil
        }
    }
}
