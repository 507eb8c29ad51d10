import Foundation
import TransferKit

extension EventHub {
    /// Numbers and publishes events as if they had been stored.
    func send(_ kinds: QueueEvent.Kind...) {
        publish(number(kinds, at: .now))
    }
}

extension QueueEvents {
    func collect() async -> [QueueEvent] {
        await reduce(into: []) { $0.append($1) }
    }

    /// Returns the next `count` events, or fewer if the sequence ends.
    func collect(_ count: Int) async -> [QueueEvent] {
        var events: [QueueEvent] = []
        var iterator = makeAsyncIterator()
        while events.count < count, let event = await iterator.next() { events.append(event) }
        return events
    }
}
