import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct SlowSubscriberTests {
    @Test func millionChangesFillLimitedBufferAndCauseGap() async throws {
        let hub = EventHub()
        let events = hub.subscribe()
        let id = SessionID()
        let thousand = (0..<500).flatMap { _ in [QueueEvent.Kind.didActivate(id), .didDeactivate(id)] }
        for _ in 0..<1_000 {
            hub.publish(hub.number(thousand, at: .now))
            hub.publishUnnumbered(.progress(id, SessionStatistics()), at: .now)
        }
        hub.finish()
        let received = await events.collect()
        #expect(received.count < 4_200)
        #expect(received.last?.kind == .gap(from: UInt64(received.count - 4), to: 1_000_000))
        #expect(received.dropLast().filter { $0.kind != .progress(id, SessionStatistics()) }.map(\.revision) == Array(1...4_091))
    }

    @Test func largeEventsFillBufferSooner() async throws {
        let hub = EventHub(capacity: 100)
        let events = hub.subscribe()
        let ids = (0..<2_560).map { _ in SessionID() }
        for _ in 0..<1_000 { hub.send(.cancelled(ids)) }
        hub.finish()
        let received = await events.collect()
        // Each event takes 11 of the buffer's 100 units, so 9 events and the gap fit.
        #expect(received.count == 10)
        #expect(received.last?.kind == .gap(from: 10, to: 1_000))
    }

    @Test func deliversEventLargerThanBuffer() async throws {
        let hub = EventHub(capacity: 4)
        let events = hub.subscribe()
        let ids = (0..<10_000).map { _ in SessionID() }
        hub.send(.cancelled(ids), .queueStopped)
        hub.finish()
        #expect(await events.collect().map(\.kind) == [.cancelled(ids), .gap(from: 2, to: 2)])
    }

    /// With these capacities, the buffer becomes full at each position within a change.
    @Test(arguments: 4...12) func gapNeverSplitsChangeOfOrder(capacity: Int) async throws {
        let hub = EventHub(capacity: capacity)
        let events = hub.subscribe()
        let id = SessionID()
        for revision in 1...4 {
            hub.send(
                .willChangeQueue(orderRevision: UInt64(revision)), .added([id], index: 0), .didChangeQueue(orderRevision: UInt64(revision)))
        }
        var iterator = events.makeAsyncIterator()
        var received = [await iterator.next()?.kind, await iterator.next()?.kind]
        hub.send(.willChangeQueue(orderRevision: 5), .added([id], index: 0), .didChangeQueue(orderRevision: 5))
        hub.finish()
        while let event = await iterator.next() { received.append(event.kind) }
        var isOpen = false
        for kind in received {
            switch kind {
            case .willChangeQueue: isOpen = true
            case .added: #expect(isOpen)
            case .didChangeQueue:
                #expect(isOpen)
                isOpen = false
            default: #expect(!isOpen)
            }
        }
        #expect(!isOpen)
    }

    @Test func keepsLatestProgressOfEachSession() async throws {
        let hub = EventHub()
        let events = hub.subscribe()
        let (first, second) = (SessionID(), SessionID())
        for bytes in 1...1_000 {
            for id in [first, second] { hub.publishUnnumbered(.progress(id, SessionStatistics(bytesSent: Int64(bytes))), at: .now) }
        }
        hub.finish()
        let figures = SessionStatistics(bytesSent: 1_000)
        #expect(await events.collect().map(\.kind) == [.progress(first, figures), .progress(second, figures)])
    }

    @Test func releasedHubEndsSubscriptions() async throws {
        var hub: EventHub? = EventHub()
        let events = try #require(hub).subscribe()
        hub?.send(.queueStarted)
        hub = nil
        #expect(await events.collect().map(\.kind) == [.queueStarted])
    }
}
