/// The events of a queue, from when the sequence was made, for one consumer.
///
/// Events are kept until they are taken, up to 4,096; a consumer that falls further behind finds a `gap` event in their place. The sequence
/// ends with the queue's shutdown or with the task that iterates.
public struct QueueEvents: AsyncSequence, Sendable {
    let buffer: EventBuffer

    /// Takes the events one by one.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        let buffer: EventBuffer

        /// The next event; nil at the end.
        public mutating func next() async -> QueueEvent? {
            await buffer.next()
        }

        /// The next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> QueueEvent? {
            await buffer.next()
        }
    }

    /// Begins to take events. All iterators of one sequence share its events.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(buffer: buffer)
    }
}
