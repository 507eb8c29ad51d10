/// The events of a queue for one consumer. The sequence begins with the first event after the creation of the sequence, or after a given earlier
/// event.
///
/// The sequence buffers up to 4,096 events. An event that names many sessions counts as one event, plus one for every 256 sessions. If the
/// buffer is full, a ``QueueEvent/Kind/gap(from:to:)`` event replaces the missed events. A sequence made with
/// ``TransferQueue/events(since:)`` reads the missed events from the change log instead. Unstored events, such as
/// ``QueueEvent/Kind/progress(_:_:)``, can be missed without a gap.
///
/// The sequence ends when the queue shuts down or the iterating task is cancelled.
public struct QueueEvents: AsyncSequence, Sendable {
    private let buffer: EventBuffer
    private let replay: EventReplay?

    init(buffer: EventBuffer, replay: EventReplay? = nil) {
        self.buffer = buffer
        self.replay = replay
    }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let buffer: EventBuffer
        fileprivate var replay: EventReplay?

        /// Waits for the next event; nil at the end.
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

        /// Waits for the next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> QueueEvent? {
            await next()
        }
    }

    /// Creates an iterator. All iterators of one sequence share its events, so create only one iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(buffer: buffer, replay: replay)
    }
}
