/// The events of a queue, from when the sequence was made or from an earlier event on, for one consumer.
///
/// Events are kept until they are taken, up to 4,096, where 256 sessions that an event names count as another one. A consumer that falls further
/// behind finds a ``QueueEvent/Kind/gap(from:to:)`` event in their place, or, if the sequence began with ``TransferQueue/events(since:)``, gets
/// them from the change log. The sequence ends with the queue's shutdown or with the task that iterates.
public struct QueueEvents: AsyncSequence, Sendable {
    private let buffer: EventBuffer
    private let replay: EventReplay?

    init(buffer: EventBuffer, replay: EventReplay? = nil) {
        self.buffer = buffer
        self.replay = replay
    }

    /// Takes the events one by one.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let buffer: EventBuffer
        fileprivate var replay: EventReplay?

        /// The next event; nil at the end.
        public mutating func next() async -> QueueEvent? {
            while true {
                do {
                    if let event = try await replay?.next() { return event }
                } catch {
                    return nil
                }
                guard let event = await buffer.next() else { return nil }
                guard replay != nil, case .gap(let from, let to) = event.kind, from <= to else { return event }
                replay?.read(from...to)
            }
        }

        /// The next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> QueueEvent? {
            await next()
        }
    }

    /// Begins to take events. All iterators of one sequence share its events: make one.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(buffer: buffer, replay: replay)
    }
}
