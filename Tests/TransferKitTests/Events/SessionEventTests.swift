import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct SessionEventTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private func collect(_ events: SessionEvents) async -> [SessionEvent] {
        await events.reduce(into: []) { $0.append($1) }
    }

    private func names(_ events: [SessionEvent]) -> [String] {
        events.map { event in
            switch event {
            case .snapshot(let status): "snapshot \(status.state)"
            case .event(let event): event.kind.name
            case .ended(.completed): "ended completed"
            case .ended(.failed): "ended failed"
            case .ended(.cancelled): "ended cancelled"
            case .ended(.removed): "ended removed"
            }
        }.filter { $0 != "progress" }
    }

    @Test func deliversStatusFirstAndEndLast() async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await queue.enqueue([try fixture.upload("1", "2"), try fixture.upload("3"), try fixture.upload("4")])
        let first = sessions[0].events
        let last = sessions[2].events
        var iterator = first.makeAsyncIterator()
        let initialSnapshot = await iterator.next()
        try await queue.start()
        await queue.waitUntilIdle()
        try await queue.apply(.remove(), to: .sessions(sessions.map(\.id)))
        await queue.shutdown()
        var received = [initialSnapshot].compactMap(\.self)
        while let event = await iterator.next() { received.append(event) }
        #expect(names(received).first == "snapshot waiting" && names(received).last == "ended completed")
        #expect(names(received).filter { $0 == "itemCompleted" }.count == 2)
        for case .event(let event) in received { #expect(event.session == sessions[0].id) }
        // A removed session has no status, so the stream contains only the end event.
        #expect(names(await collect(last)) == ["ended removed"])
    }

    @Test func reportsEarlierEndImmediately() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."))
        let failed = try await queue.enqueue(try fixture.upload("1"))
        let completed = try await queue.enqueue(try fixture.upload("2"))
        let removed = try await queue.enqueue(try fixture.upload("3"))
        try await removed.remove()
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(names(await collect(failed.events)) == ["snapshot failed", "ended failed"])
        #expect(names(await collect(completed.events)) == ["snapshot completed", "ended completed"])
        #expect(names(await collect(removed.events)) == ["ended removed"])
        await #expect(throws: TransferError.self) { try await failed.value }
        await #expect(throws: TransferError.self) { try await removed.value }
        await queue.shutdown()
    }

    @Test func endsOnRemoval() async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await queue.enqueue([try fixture.upload("1"), try fixture.upload("2")])
        let events = sessions[1].events
        let value = Task { try await sessions[1].value }
        var iterator = events.makeAsyncIterator()
        guard case .snapshot = await iterator.next() else { throw Unexpected() }
        try await queue.apply(.remove(), to: .sessions(sessions.map(\.id)))
        #expect(await iterator.next() == .ended(.removed))
        #expect(await iterator.next() == nil)
        #expect(await #expect(throws: TransferError.self) { try await value.value }?.code == .cancelled)
        await queue.shutdown()
    }

    @Test func replacesGapWithStatus() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        let hub = EventHub(capacity: 4)
        let events = SessionEvents(id: session.id, queue: queue, events: hub.subscribe(to: session.id))
        var iterator = events.makeAsyncIterator()
        guard case .snapshot = await iterator.next() else { throw Unexpected() }
        for _ in 1...10 { hub.send(.updated(session.id)) }
        for _ in 1...3 {
            guard case .event(let event) = await iterator.next() else { throw Unexpected() }
            #expect(event.kind == .updated(session.id))
        }
        guard case .snapshot(let status) = await iterator.next() else { throw Unexpected() }
        #expect(status.state == .waiting)
        hub.send(.cancelled([SessionID(), session.id]))
        #expect(await iterator.next() == .ended(.cancelled))
        await queue.shutdown()
    }

    @Test func eventsOfSeveralSessionsAreReducedToOneSession() async throws {
        let hub = EventHub()
        let ids = (0..<3).map { _ in SessionID() }
        let (one, other) = (hub.subscribe(to: ids[1]), hub.subscribe(to: SessionID()))
        hub.send(.willChangeQueue(orderRevision: 1), .added(ids, index: 4), .didChangeQueue(orderRevision: 1))
        hub.send(.changed(ids, .held), .removed(ids, indices: [4, 6, 9]), .completed(ids[0]))
        hub.finish()
        #expect(
            await one.collect().map(\.kind) == [.added([ids[1]], index: 5), .changed([ids[1]], .held), .removed([ids[1]], indices: [6])])
        #expect(await other.collect().isEmpty)
    }

    @Test func stopsWithoutEndEventOnShutdown() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        let value = Task { try await session.value }
        let events = session.events
        var iterator = events.makeAsyncIterator()
        guard case .snapshot = await iterator.next() else { throw Unexpected() }
        await queue.shutdown()
        #expect(await iterator.next() == nil)
        await #expect(throws: (any Error).self) { try await value.value }
    }

    private struct Unexpected: Error {}
}
