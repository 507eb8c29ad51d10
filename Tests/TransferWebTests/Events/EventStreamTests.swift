import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite(.timeLimit(.minutes(5))) struct EventStreamTests {
    @Test func `events arrive in order with their revisions`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let reader = try await EventReader(fixture.client(), "/api/v1/events?since=0")
            let before = try await reader.events(upTo: "added")
            try await fixture.queue.cancel(id)
            let after = try await reader.events(upTo: "cancelled")
            let revisions = (before + after).compactMap(\.id)
            #expect(revisions == Array(1...UInt64(revisions.count)))
            #expect(after.last?.data["ids"] as? [String] == [id.description])
            reader.disconnect()
        }
    }

    @Test func `events that change the order have an index, and other events have none`() async throws {
        try await WebFixture.with { fixture in
            let ids = try await fixture.add(3)
            try await fixture.queue.move(ids[2], to: .index(1))
            try await fixture.queue.release(ids[0])
            try await fixture.queue.cancel(ids[1])
            try await fixture.queue.remove(ids[0])
            let reader = try await EventReader(fixture.client(), "/api/v1/events?since=0")
            var indices: [String] = []
            for event in try await reader.events(upTo: "removed") {
                // Each event has the member `index`, which may be null.
                let index = try #require(event.data["index"])
                if let index = index as? Int { indices.append("\(event.data["event"] ?? "") \(index)") }
            }
            reader.disconnect()
            #expect(indices == ["added 0", "moved 1", "removed 0"])
        }
    }

    @Test func `a client that reconnects misses nothing`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            var last = await fixture.queue.status().revision
            var revisions: [UInt64] = []
            for round in 0..<5 {
                let reader = try await EventReader(client, last: last)
                try await fixture.queue.release(id)
                // The connection ends at different events of the round.
                for _ in 0...(round % 2) {
                    let event = try await reader.next()
                    last = try #require(event.id)
                    revisions.append(last)
                }
                reader.disconnect()
                try await fixture.queue.hold(id)
            }
            let end = await fixture.queue.status().revision
            let reader = try await EventReader(client, last: last)
            while last < end {
                last = try #require(try await reader.next().id)
                revisions.append(last)
            }
            reader.disconnect()
            let first = try #require(revisions.first)
            #expect(revisions == revisions.indices.map { first + UInt64($0) })
        }
    }

    /// After a progress event, the server sends nothing for 200 ms. During this time, the server receives more events than it keeps.
    @Test func `a slow client gets the events that the server no longer keeps`() async throws {
        try await WebFixture.with {
            $0.limits.recentEvents = 1
        } _: { fixture in
            let id = try await fixture.add(1)[0]
            let source = try fixture.file("large", size: 3 << 20)
            try await fixture.queue.setRateLimit(100_000)
            let start = await fixture.queue.status().revision
            let reader = try await EventReader(fixture.client(), last: start)
            try await fixture.queue.add([.upload(items: [TransferItem(source, as: "large")], to: "a")], at: nil, held: false)
            try await fixture.queue.start()
            var revisions: [UInt64] = []
            func readsProgress() async throws -> Bool {
                let event = try await reader.next()
                if event.data["event"] as? String == "progress" { return true }
                if event.name == nil, let id = event.id, id > 0 { revisions.append(id) }
                return false
            }
            for _ in 0..<5 {
                while try await !readsProgress() {}
                for _ in 0..<3 {
                    try await fixture.queue.release(id)
                    try await fixture.queue.hold(id)
                }
            }
            // Reads the events after the last progress event.
            let end = await fixture.queue.status().revision
            while (revisions.last ?? start) < end { _ = try await readsProgress() }
            reader.disconnect()
            #expect(revisions == revisions.indices.map { start + 1 + UInt64($0) })
            #expect(revisions.count > 24)
        }
    }

    @Test func `no event is lost or repeated while clients reconnect during changes`() async throws {
        try await WebFixture.with {
            // The clients often need events that the server no longer keeps.
            $0.limits.recentEvents = 8
        } _: { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            let start = await fixture.queue.status().revision
            let end = start + 200
            try await withThrowingTaskGroup { group in
                group.addTask {
                    for _ in 0..<100 {
                        try await fixture.queue.release(id)
                        try await fixture.queue.hold(id)
                    }
                }
                for number in 1...3 {
                    group.addTask {
                        var revisions: [UInt64] = []
                        while revisions.last.map({ $0 < end }) ?? true {
                            let reader = try await EventReader(client, last: revisions.last ?? start)
                            // Each client breaks the connection after a different number of events.
                            for _ in 0..<number * 3 where revisions.last.map({ $0 < end }) ?? true {
                                revisions.append(try #require(try await reader.next().id))
                            }
                            reader.disconnect()
                        }
                        #expect(revisions == Array(start + 1...end))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `a server with event clients stops, and starts again`() async throws {
        try await WebFixture.with { fixture in
            let reader = try await EventReader(fixture.client())
            let late = try await EventReader(fixture.client(), last: 1_000_000_000)
            await fixture.server.stop()
            await #expect(throws: (any Error).self) { while true { _ = try await reader.next() } }
            await #expect(throws: (any Error).self) { while true { _ = try await late.next() } }
            _ = try await fixture.server.start()
        }
    }

    /// No event occurs after the start of the server.
    @Test(arguments: [100_000, 30]) func `a client of a quiet queue gets the missed events and comments`(_ log: Int) async throws {
        try await WebFixture.with(queue: { $0.changeLogLimit = log }) { fixture in
            let id = try await fixture.add(1)[0]
            // More events than the server reads when it starts.
            for _ in 0..<80 {
                try await fixture.queue.release(id)
                try await fixture.queue.hold(id)
            }
            let end = await fixture.queue.status().revision
            var options = WebServerOptions()
            (options.port, options.limits.heartbeat) = (0, .milliseconds(20))
            let server = WebServer(RemoteTransferQueue(folder: fixture.store, timeout: .seconds(60)), options: options)
            let port = try #require(URLComponents(string: try await server.start())?.port)
            let client = WebClient(port: UInt16(port), token: try fixture.token())
            var readers: [EventReader] = []
            for last in [nil, end, end - 1, end - 20, end - 120, 1, 0, end + 1, 1_000_000] {
                let reader = try await EventReader(client, last: last)
                if let last, last != end {
                    var revisions: [UInt64] = []
                    while revisions.last != end { revisions.append(try #require(try await reader.next().id)) }
                    if last > end { #expect(revisions == [end]) }
                    if last < end, end - last <= log { #expect(revisions == Array(last + 1...end)) }
                }
                try await reader.comment()
                readers.append(reader)
            }
            await server.stop()
            for reader in readers {
                await #expect(throws: EventReader.StreamEnded.self) { while true { _ = try await reader.next() } }
            }
        }
    }

    @Test func `events that the server no longer keeps come from the change log`() async throws {
        try await WebFixture.with {
            $0.limits.recentEvents = 4
        } _: { fixture in
            // The server has received events before the client requests earlier ones.
            let (start, end, observer) = try await observeChanges(20, of: fixture)
            observer.disconnect()
            let reader = try await EventReader(fixture.client(), last: start)
            var revisions: [UInt64] = []
            while revisions.last != end { revisions.append(try #require(try await reader.next().id)) }
            reader.disconnect()
            #expect(revisions == revisions.indices.map { start + 1 + UInt64($0) })
        }
    }

    @Test func `a client with a revision of another queue gets a gap event`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(1)
            // After this event, the server knows the revision of the queue.
            let observer = try await EventReader(fixture.client(), "/api/v1/events?since=0")
            _ = try await observer.next()
            observer.disconnect()
            let reader = try await EventReader(fixture.client(), last: 1_000_000)
            let event = try await reader.next()
            #expect(event.data["event"] as? String == "gap")
            #expect(try #require(event.id) < 1_000_000)
            reader.disconnect()
        }
    }

    @Test func `clients get the events of a queue that replaced another one before the server received any event`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(5)
            // Subscribe until the owner accepts no further subscriber, and so rejects the server that starts below.
            let remote = RemoteTransferQueue(folder: fixture.store)
            var subscribers: [RemoteQueueEvents.AsyncIterator] = []
            let refusal = await #expect(throws: QueueError.self) {
                while true {
                    var subscriber = remote.events(since: 0).makeAsyncIterator()
                    _ = try await subscriber.next()
                    subscribers.append(subscriber)
                }
            }
            #expect(refusal?.code == .tooManySubscribers)
            var options = WebServerOptions()
            options.port = 0
            let server = WebServer(RemoteTransferQueue(folder: fixture.store, timeout: .seconds(60)), options: options)
            let port = try #require(URLComponents(string: try await server.start())?.port)
            let reader = try await EventReader(WebClient(port: UInt16(port), token: try fixture.token()), last: 0)
            // The server sends one comment when it begins to wait, and one after each attempt to subscribe.
            for _ in 0..<3 { try await reader.comment() }
            await fixture.control.shutDownQueue()
            try FileManager.default.removeItem(atPath: fixture.store.string)
            let next = try await TransferQueue(storage: .folder(fixture.store), transports: [fixture.memory])
            let control = try ControlServer(for: next, as: .application, logger: fixture.logger)
            try await next.setRateLimit(5)
            #expect(try await reader.next().data["event"] as? String == "gap")
            try await next.setRateLimit(6)
            #expect(try await reader.next().data["event"] as? String == "limitsChanged")
            subscribers = []
            await server.stop()
            await control.shutDownQueue()
        }
    }

    /// The server has dropped events of the first queue, so the server's oldest kept revision is higher than the revisions of the second
    /// queue.
    @Test(.timeLimit(.minutes(1)))
    func `clients of a queue that replaced one with more events get comments and new events`() async throws {
        try await WebFixture.with {
            ($0.limits.recentEvents, $0.limits.heartbeat) = (4, .milliseconds(20))
        } _: { fixture in
            let client = try fixture.client()
            let observer = try await observeChanges(20, of: fixture).observer
            await fixture.control.shutDownQueue()
            try FileManager.default.removeItem(atPath: fixture.store.string)
            let next = try await TransferQueue(storage: .folder(fixture.store), transports: [fixture.memory])
            try await next.setRateLimit(5)
            let control = try ControlServer(for: next, as: .application, logger: fixture.logger)
            while try await observer.next().data["event"] as? String != "gap" {}
            for (rate, sendsRevision) in [(Int64(6), false), (7, true)] {
                let reader = try await EventReader(client, last: sendsRevision ? next.status().revision : nil)
                try await reader.comment()
                try await next.setRateLimit(rate)
                for reader in [observer, reader] { #expect(try await reader.next().data["event"] as? String == "limitsChanged") }
                reader.disconnect()
            }
            observer.disconnect()
            await control.shutDownQueue()
        }
    }

    /// Releases and holds a session repeatedly, and waits until the server has received the events.
    ///
    /// - Parameter count: The number of releases, and of holds. Each release or hold causes one event.
    /// - Returns: The revisions before and after the events, and a client that has received them.
    private func observeChanges(
        _ count: Int, of fixture: WebFixture
    ) async throws -> (start: UInt64, end: UInt64, observer: EventReader) {
        let id = try await fixture.add(1)[0]
        let start = await fixture.queue.status().revision
        let observer = try await EventReader(fixture.client(), last: start)
        for _ in 0..<count {
            try await fixture.queue.release(id)
            try await fixture.queue.hold(id)
        }
        let end = await fixture.queue.status().revision
        while try await observer.next().id != end {}
        return (start, end, observer)
    }

    @Test func `the events of a running session arrive up to its completion`() async throws {
        try await WebFixture.with { fixture in
            let reader = try await EventReader(fixture.client())
            let source = try fixture.file("large", size: 3 << 20)
            try await fixture.queue.add([.upload(items: [TransferItem(source, as: "large")], to: "a")], at: nil, held: false)
            try await fixture.queue.start()
            let events = try await reader.events(upTo: "completed")
            #expect(events.contains { $0.data["event"] as? String == "didActivate" })
            reader.disconnect()
        }
    }

    @Test func `clients learn that the owner has exited, and that another owner continues`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let reader = try await EventReader(client)
            await fixture.control.close()
            var event = try await reader.next()
            while event.name != "owner" { event = try await reader.next() }
            #expect(event.data["isReachable"] as? Bool == false)
            let reply = try await client.get("/api/v1/queue")
            #expect(reply.status == 503)
            #expect(reply.code == "ownerUnreachable")
            #expect(try await fixture.browser().client.get("/").status == 503)
            let next = try ControlServer(for: fixture.queue, as: .application, logger: fixture.logger)
            while event.data["isReachable"] as? Bool != true { event = try await reader.next() }
            try await fixture.add(1)
            _ = try await reader.events(upTo: "added")
            reader.disconnect()
            await next.close()
        }
    }

    @Test func `a client that needs the change log learns that the owner has exited, and then gets the events`() async throws {
        try await WebFixture.with {
            $0.limits.recentEvents = 4
        } _: { fixture in
            let (start, end, observer) = try await observeChanges(20, of: fixture)
            await fixture.control.close()
            while try await observer.next().name != "owner" {}
            observer.disconnect()
            let reader = try await EventReader(fixture.client(), last: start)
            var event = try await reader.next()
            #expect(event.name == "owner" && event.data["isReachable"] as? Bool == false)
            let next = try ControlServer(for: fixture.queue, as: .application, logger: fixture.logger)
            event = try await reader.next()
            #expect(event.name == "owner" && event.data["isReachable"] as? Bool == true)
            var revisions: [UInt64] = []
            while revisions.last != end { revisions.append(try #require(try await reader.next().id)) }
            #expect(revisions == Array(start + 1...end))
            reader.disconnect()
            await next.close()
        }
    }

    @Test func `an invalid revision gets a problem response`() async throws {
        try await WebFixture.with { fixture in
            for revision in ["-1", "abc", "1.5", "99999999999999999999999"] {
                let reply = try await fixture.client().get("/api/v1/events", ["Last-Event-ID": revision])
                #expect(reply.code == "invalidRequest", "\(revision)")
            }
        }
    }
}
