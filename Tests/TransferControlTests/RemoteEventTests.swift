import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RemoteEventTests {
    /// An app that restarts receives each event since its exit exactly once.
    @Test func resumesAfterLastRevision() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            let before = try await remote.status().revision
            let gate = fixture.memory.gate("a", atByte: 0)
            let id = try await remote.enqueue(fixture.upload("a"))
            try await remote.start()
            try await gate.reached()
            var seen: [QueueEvent] = []
            for try await event in remote.events(since: before) where !event.isProgress {
                seen.append(event)
                if case .didActivate = event.kind { break }
            }
            gate.open()
            _ = try await queue.session(id).value
            for try await event in remote.events(since: try #require(seen.last).revision) where !event.isProgress {
                seen.append(event)
                if case .queueBecameIdle = event.kind { break }
            }
            #expect(seen.map(\.revision) == Array(before + 1...before + UInt64(seen.count)))
            var log: [QueueEvent] = []
            for await event in queue.events(since: before) {
                log.append(event)
                if log.count == seen.count { break }
            }
            #expect(seen == log)
            #expect(seen.contains { $0.kind == .completed(id) })
        }
    }

    @Test func eventsEndWhenQueueShutsDown() async throws {
        let fixture = try await ControlFixture()
        var iterator = fixture.remote.events(since: 0).makeAsyncIterator()
        try await fixture.remote.start()
        _ = try await iterator.next()
        async let end: Void = fixture.server.shutDownQueue()
        while try await iterator.next() != nil {}
        await end
        #expect(try await iterator.next() == nil)
        await #expect { try await fixture.remote.status() } throws: { ($0 as? QueueError)?.code == .ownerUnreachable }
        #expect(!FileManager.default.fileExists(atPath: fixture.store.appending("control.sock").string))
    }

    /// A retention of 0 sessions removes a session as soon as it has completed, before the client can read its last status.
    @Test func returnsStatusOfRemovedSession() async throws {
        try await ControlFixture.with { fixture in
            let id = try await fixture.queue.enqueue(fixture.upload("a")).id
            let first = try await fixture.queue.status(of: id)
            try await fixture.queue.setRetention(.count(0))
            try await fixture.queue.start()
            let events = await self.events(of: fixture.queue, untilRemovalOf: id)
            await #expect(throws: QueueError.self) { try await fixture.remote.status(of: id) }
            let last = try await value(after: first, events)
            #expect(last.id == id && last.state == .completed)
        }
    }

    /// If the app removes a session before the session ends, the session has no final status.
    @Test func reportsRemovalBeforeEnd() async throws {
        try await ControlFixture.with { fixture in
            let id = try await fixture.queue.enqueue(fixture.upload("a")).id
            let first = try await fixture.queue.status(of: id)
            try await fixture.queue.remove(id)
            let events = await self.events(of: fixture.queue, untilRemovalOf: id)
            let error = await #expect(throws: QueueError.self) { try await value(after: first, events) }
            #expect(error?.code == .noSuchSession)
        }
    }

    /// Returns the events of a queue, from its first event to the removal of a session.
    private func events(of queue: TransferQueue, untilRemovalOf id: SessionID) async -> [QueueEvent] {
        var events: [QueueEvent] = []
        for await event in queue.events(since: 0) {
            events.append(event)
            if case .removed = event.kind, event.concerns(id) { break }
        }
        return events
    }

    /// Waits for the last status of a removed session. The first read of the session's status returns `first`, and all later reads fail.
    private func value(after first: SessionStatus, _ events: [QueueEvent]) async throws -> SessionStatus {
        var statuses = [first].makeIterator()
        var remaining = events.makeIterator()
        return try await RemoteTransferQueue.value(of: first.id) {
            guard let status = statuses.next() else { throw QueueError(.noSuchSession, "The session was removed.") }
            return status
        } nextEvent: {
            remaining.next()
        }
    }

    @Test func readerCanBeCancelled() async throws {
        try await ControlFixture.with { fixture in
            let (started, signal) = AsyncStream.makeStream(of: Void.self)
            try await fixture.remote.start()
            let reader = Task {
                for try await _ in fixture.remote.events(since: 0) { signal.yield() }
            }
            for await _ in started { break }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
        }
    }

    /// The owner greets the first client, and then closes the connection without a response to the subscription.
    @Test(.timeLimit(.minutes(5))) func subscribesAgainAfterBrokenConnection() async throws {
        try await withScriptedOwner { owner, remote in
            let reader = Task {
                var iterator = remote.events(since: 5).makeAsyncIterator()
                return try await iterator.next()
            }
            var client = try await owner.subscriber()
            try client.writeAll(ScriptedOwner.greeting)
            try client.close()
            client = try await owner.subscriber()
            let event = HostileClientTests.frame(#"{"event":{"revision":6,"time":0,"event":"queueStarted"}}"#)
            try client.writeAll(ScriptedOwner.greeting + HostileClientTests.frame(#"{"value":5}"#) + event)
            #expect(try await reader.value?.revision == 6)
            try client.close()
        }
    }

    /// The owner does not respond to the subscription.
    @Test(.timeLimit(.minutes(5))) func subscriptionCanBeCancelled() async throws {
        try await withScriptedOwner { owner, remote in
            let reader = Task {
                var iterator = remote.events(since: 5).makeAsyncIterator()
                return try await iterator.next()
            }
            let client = try await owner.subscriber()
            try client.writeAll(ScriptedOwner.greeting)
            // Afterwards, the client waits for the response to the subscription.
            try await owner.sendHeartbeats(to: client)
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            try client.close()
        }
    }

    /// Passes a ``ScriptedOwner``, and a client of this owner, to a test.
    private func withScriptedOwner(_ body: (ScriptedOwner, RemoteTransferQueue) async throws -> Void) async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        try await body(ScriptedOwner(folder), RemoteTransferQueue(folder: folder, timeout: .seconds(60)))
    }

    @Test func reportsFailureWithoutError() async throws {
        try await ControlFixture.with { fixture in
            let id = try await fixture.queue.enqueue(fixture.upload("a")).id
            var status = try await fixture.queue.status(of: id)
            status.state = .failed
            let failed = status
            let error = await #expect(throws: TransferError.self) { try await value(after: failed, []) }
            #expect(error?.code == .internalFailure, "\(String(describing: error))")
        }
    }

    @Test func endsOwnerOnRequest() async throws {
        let (requested, signal) = AsyncStream.makeStream(of: Void.self)
        let fixture = try await ControlFixture { signal.yield() }
        async let ended: Void = fixture.remote.stopAgent()
        for await _ in requested { break }
        await fixture.server.shutDownQueue()
        try await ended
    }
}

extension QueueEvent {
    fileprivate var isProgress: Bool {
        if case .progress = kind { true } else { false }
    }
}
