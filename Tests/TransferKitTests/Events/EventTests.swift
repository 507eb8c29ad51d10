import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct EventTests {
    @Test func eventsArriveInOrder() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let session = try await queue.enqueue(try fixture.upload("1", "2"))
        try await queue.start()
        await queue.waitUntilIdle()
        try await session.remove()
        await queue.shutdown()
        var names: [String] = []
        var revision: UInt64 = 0
        for await event in events {
            if case .progress = event.kind { continue }
            #expect(event.revision == revision + 1)
            revision = event.revision
            names.append(event.kind.name)
        }
        #expect(
            names == [
                "willChangeQueue", "added", "didChangeQueue", "queueStarted", "willActivate", "didActivate", "willStartRunning",
                "didStartRunning", "itemCompleted", "itemCompleted", "willStopRunning", "didStopRunning", "willDeactivate",
                "didDeactivate", "completed", "queueBecameIdle", "willChangeQueue", "removed", "didChangeQueue", "queueStopped",
            ])
    }

    @Test func progressNeverDecreases() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        fixture.memory.faults.append(.cut(afterBytes: 3_500))
        let gates = [2_000, 6_000].map { fixture.memory.gate("1", atByte: $0) }
        let session = try await queue.enqueue(try fixture.upload("1", options: SessionOptions(retry: RetryPolicy(base: .zero))))
        let progress = session.progress
        let collected = Task { await progress.reduce(into: [SessionStatistics]()) { $0.append($1) } }
        try await queue.start()
        for gate in gates {
            try await gate.reached()
            await fixture.clock.waitForSleep(of: .milliseconds(100))
            fixture.clock.advance(by: .milliseconds(100))
            gate.open()
        }
        _ = try await session.value
        let figures = await collected.value
        #expect(figures.last?.bytesDone == 10_000 && figures.last?.bytesSent == 10_000)
        for (earlier, later) in zip(figures, figures.dropFirst()) {
            #expect(earlier.bytesDone <= later.bytesDone && earlier.bytesSent <= later.bytesSent)
            #expect(later.bytesDone <= later.bytesSent && later.bytesSent <= later.bytesKnown)
        }
        await queue.shutdown()
    }

    @Test func firstEndpointIsNotReportedAsChange() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open()
        let endpoints = ["x", "y"].map { fixture.memory.endpoint(host: $0) }
        try await queue.save(Account("a", endpoints: endpoints))
        let events = queue.events
        try await queue.start()
        _ = try await queue.enqueue(try fixture.upload("1")).value
        fixture.memory.refuse(host: "x")
        let moved = try await queue.enqueue(try fixture.upload("2"))
        _ = try await moved.value
        await queue.shutdown()
        var changes: [QueueEvent.Kind] = []
        for await event in events {
            if case .endpointChanged = event.kind { changes.append(event.kind) }
        }
        #expect(fixture.memory.attempts.map(\.endpoint) == [endpoints[0], endpoints[0], endpoints[1]])
        #expect(changes == [.endpointChanged(moved.id, from: endpoints[0].location, to: endpoints[1].location)])
    }

    @Test func slowSubscriberReceivesGap() async throws {
        let hub = EventHub(capacity: 8)
        var events = hub.subscribe().makeAsyncIterator()
        for _ in 1...20 { hub.send(.queueStarted) }
        for revision in 1...7 { #expect(await events.next()?.revision == UInt64(revision)) }
        hub.send(.queueStopped)
        guard case .gap(from: 8, to: 20) = await events.next()?.kind else { throw Unexpected() }
        let next = try #require(await events.next())
        #expect(next.revision == 21)
        guard case .queueStopped = next.kind else { throw Unexpected() }
    }

    @Test func gapArrivesWithoutFurtherEvents() async throws {
        let hub = EventHub(capacity: 8)
        var events = hub.subscribe().makeAsyncIterator()
        for _ in 1...20 { hub.send(.queueStarted) }
        for _ in 1...7 { _ = await events.next() }
        guard case .gap(from: 8, to: 20) = await events.next()?.kind else { throw Unexpected() }
    }

    @Test func newerProgressReplacesUnreadProgress() async throws {
        let hub = EventHub(capacity: 8)
        let id = SessionID()
        var events = hub.subscribe().makeAsyncIterator()
        hub.send(.didActivate(id))
        for bytes in 1...1_000 { hub.publishUnnumbered(.progress(id, SessionStatistics(bytesSent: Int64(bytes))), at: .now) }
        hub.send(.completed(id))
        hub.finish()
        guard case .didActivate = await events.next()?.kind, case .progress(_, let figures) = await events.next()?.kind else {
            throw Unexpected()
        }
        #expect(figures.bytesSent == 1_000)
        guard case .completed = await events.next()?.kind else { throw Unexpected() }
        #expect(await events.next() == nil)
    }

    private struct Unexpected: Error {}

    @Test func listeningTaskCanBeCancelled() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let listener = Task { [events = queue.events] in for await _ in events {} }
        listener.cancel()
        await listener.value
        await queue.shutdown()
    }
}
