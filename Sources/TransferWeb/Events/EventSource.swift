import TransferControl
import TransferKit

/// Reads the events of a queue after a revision: first the stored events from the change log, then new events. Ends when the queue shuts down.
typealias EventSource = @Sendable (_ revision: UInt64) -> AsyncThrowingStream<QueueEvent, any Error>

enum EventSources {
    static func events(of queue: RemoteTransferQueue) -> EventSource {
        { revision in stream(queue.events(since: revision)) }
    }

    static func events(of queue: TransferQueue) -> EventSource {
        { [weak queue] revision in
            guard let queue else { return AsyncThrowingStream { $0.finish() } }
            return stream(queue.events(since: revision))
        }
    }

    private static func stream<Events: AsyncSequence & Sendable>(_ events: Events) -> AsyncThrowingStream<QueueEvent, any Error>
    where Events.Element == QueueEvent {
        let iterator = IteratorBox(events.makeAsyncIterator())
        // The consumer requests each event, so a slow consumer leaves the events in the queue's bounded buffer.
        return AsyncThrowingStream(unfolding: { try await iterator.next() })
    }

    /// An iterator for one consumer at a time.
    private actor IteratorBox<Events: AsyncIteratorProtocol> where Events.Element == QueueEvent {
        private var iterator: Events?

        init(_ iterator: sending Events) { self.iterator = iterator }

        func next() async throws -> QueueEvent? {
            guard var current = iterator.take() else { return nil }
            let event = try await current.next(isolation: #isolation)
            iterator = current
            return event
        }
    }
}
