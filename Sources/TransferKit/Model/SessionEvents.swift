public import TransferCore

/// What a handle tells of its session.
public enum SessionEvent: Hashable, Sendable {
    /// The session as it is: first of all, and again after events were missed.
    case present(SessionStatus)
    /// Something happened to it. Of events that name several sessions this is the part about this one.
    case event(QueueEvent)
    /// The session has ended; nothing follows.
    case ended(SessionEnd)
}

/// How a session ended.
public enum SessionEnd: Hashable, Sendable {
    /// All of its items are at their destination.
    case completed
    /// It was given up.
    case failed(TransferError)
    /// The app ended it.
    case cancelled
    /// It is no longer in the queue.
    case removed
}

/// The events of one session, for one consumer: the present first, then what happens to it, and its end last.
///
/// A session that is retried after its end has a new sequence to be asked for. Without a ``SessionEvent/ended(_:)`` the sequence ends with the
/// queue's shutdown or with the task that iterates. What a slow consumer misses is replaced by the session as it is then.
public struct SessionEvents: AsyncSequence, Sendable {
    let id: SessionID
    let queue: TransferQueue
    let events: QueueEvents

    package init(id: SessionID, queue: TransferQueue, events: QueueEvents) {
        self.id = id
        self.queue = queue
        self.events = events
    }

    /// Takes the events one by one.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        private let id: SessionID
        private let queue: TransferQueue
        private var events: QueueEvents.AsyncIterator
        private var wantsPresent: Bool
        private var end: SessionEnd?
        private var hasEnded = false

        init(_ sequence: SessionEvents, wantsPresent: Bool = true) {
            self.wantsPresent = wantsPresent
            id = sequence.id
            queue = sequence.queue
            events = sequence.events.makeAsyncIterator()
        }

        /// The next event; nil at the end.
        public mutating func next() async -> SessionEvent? {
            guard !hasEnded else { return nil }
            if end == nil, wantsPresent, let status = await present() { return .present(status) }
            while end == nil {
                guard let event = await events.next() else { return nil }
                switch event.kind {
                case .gap: wantsPresent = true
                case .completed: end = .completed
                case .failed(_, let error): end = .failed(error)
                case .cancelled: end = .cancelled
                case .removed: end = .removed
                default: if !wantsPresent { return .event(event) }
                }
                if end == nil, wantsPresent, let status = await present() { return .present(status) }
            }
            hasEnded = true
            return end.map { .ended($0) }
        }

        /// The next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await next()
        }

        /// Reads the session; nil if that can't be done now. It is tried again at the next event then.
        private mutating func present() async -> SessionStatus? {
            do {
                let status = try await queue.session(id)
                wantsPresent = false
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

    /// Begins to take events. All iterators of one sequence share its events: make one.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(self)
    }
}

extension SessionEnd {
    /// Nil if the session has not ended.
    init?(_ status: SessionStatus) {
        switch status.state {
        case .completed: self = .completed
        case .failed:
            self = .failed(
                status.error ?? TransferError(.permanent, .internalFailure, "The session \(status.id) failed without a reason."))
        case .cancelled: self = .cancelled
        case .waiting, .running, .paused, .held: return nil
        }
    }
}
