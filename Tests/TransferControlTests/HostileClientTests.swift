import Foundation
import Logging
import SystemPackage
import Testing
import TransferControl
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Clients that hang, send invalid data or disconnect must not affect other clients.
@Suite struct HostileClientTests {
    @Test(arguments: [
        Data("GET / HTTP/1.1\r\n\r\n".utf8), Data([0xFF, 0xFF, 0xFF, 0xFF]), Data([0, 0, 0, 2]) + Data("{}".utf8), Data([0, 0]),
        HostileClientTests.greeting + HostileClientTests.frame(#"{"unknown":{}}"#),
    ])
    func disconnectsClientsWithInvalidData(bytes: Data) async throws {
        try await ControlFixture.with { fixture in
            let client = try RawClient(fixture.store)
            try client.send(bytes)
            client.endSending()
            _ = await client.readToEnd()
            #expect(try await fixture.remote.status().sessions == 0)
        }
    }

    /// Without these checks, an arithmetic overflow could end the owner's process.
    @Test(arguments: [
        (#"{"items":{"of":"NUMBER","from":0,"limit":-1}}"#, "negative"),
        (#"{"items":{"of":"NUMBER","from":-9223372036854775808,"limit":-9223372036854775808}}"#, "negative"),
        (#"{"findSessionIDs":{"prefix":"","limit":-1}}"#, "negative"),
        (#"{"stop":{"_0":"drain","deadline":[-9223372036854775808,0]}}"#, "negative"),
        (#"{"stop":{"_0":"drain","deadline":[9223372036854775807,0]}}"#, "too large"),
        (#"{"stopAndWait":{"_0":"drain","deadline":[-1,0]}}"#, "negative"),
        (#"{"setMaxConcurrentSessions":{"_0":-9223372036854775808}}"#, "at least 1"),
        (#"{"setRateLimit":{"_0":-9223372036854775808}}"#, "at least 1"),
        (#"{"setMaxConcurrentSessions":{"_0":-1,"account":"a"}}"#, "at least 1"),
        (#"{"add":{"at":-9223372036854775808,"held":false}}"#, "index"),
        (#"{"items":{"of":"NUMBER","from":9223372036854775807,"limit":9223372036854775807}}"#, "value"),
        (#"{"sessions":{"from":-9223372036854775808,"to":9223372036854775807}}"#, "value"), (#"{"sessions":{"from":5,"to":3}}"#, "value"),
    ])
    func rejectsInvalidNumbers(request: String, words: String) async throws {
        try await ControlFixture.with { fixture in
            let id = try await fixture.remote.add([fixture.upload("a")])[0]
            let client = try RawClient(fixture.store)
            try client.send(Self.greeting + Self.frame(request.replacingOccurrences(of: "NUMBER", with: id.description)))
            let response = String(decoding: await client.readToEnd(), as: UTF8.self)
            #expect(response.contains(words), "\(response)")
            #expect(try await fixture.remote.status().sessions == 1)
        }
    }

    @Test func rejectsOtherVersions() async throws {
        try await ControlFixture.with { fixture in
            let client = try RawClient(fixture.store)
            try client.send(Self.frame(#"{"protocol":"transferkit-control","versions":[99]}"#))
            let response = await client.readToEnd()
            let greeting = try #require(try JSONSerialization.jsonObject(with: response.dropFirst(4)) as? [String: Any])
            #expect(greeting["version"] == nil && greeting["owner"] != nil)
        }
    }

    /// The server disconnects silent clients after a timeout. Even if silent clients use all connection slots, other clients wait no longer
    /// than this timeout.
    @Test func disconnectsSilentClients() async throws {
        try await ControlFixture.with(timeout: .milliseconds(200)) { fixture in
            let silent = try (0..<64).map { _ in try RawClient(fixture.store) }
            // This client must wait for a slot.
            #expect(try await fixture.remote.status().sessions == 0)
            for client in silent { #expect(await client.readToEnd().isEmpty) }
            // Sends the greeting and the request together, because the server's timeout is short in this test.
            let client = try RawClient(fixture.store)
            try client.send(Self.greeting + Self.frame(#"{"status":{}}"#))
            let response = await client.readToEnd()
            #expect(String(decoding: response, as: UTF8.self).contains(#""orderRevision""#))
        }
    }

    /// If all connection slots are in use, the server disconnects the oldest silent clients to make room for others, even with a long
    /// timeout.
    @Test func disconnectsOldestSilentClientsIfSlotsAreFull() async throws {
        try await ControlFixture.with(timeout: .seconds(3_600)) { fixture in
            let silent = try (0..<70).map { _ in try RawClient(fixture.store) }
            #expect(try await fixture.remote.status().sessions == 0)
            for client in silent.prefix(7) { #expect(await client.readToEnd().isEmpty, "the oldest clients are disconnected") }
        }
    }

    /// Neither the queue nor its shutdown waits for a subscriber that reads nothing.
    @Test func ignoresSubscriberThatReadsNothing() async throws {
        try await ControlFixture.with { fixture in
            let client = try RawClient(fixture.store)
            try client.send(Self.greeting + Self.frame(#"{"events":{"since":0}}"#))
            let request = try fixture.upload("a")
            // The events of these operations exceed the socket buffer.
            let requests = (0..<2_000).map { _ in
                var copy = request
                copy.id = SessionID()
                return copy
            }
            for _ in 0..<4 {
                let ids = try await fixture.queue.add(requests, held: true)
                try await fixture.queue.apply(.remove(), to: .sessions(ids))
            }
            #expect(try await fixture.remote.status().sessions == 0)
            await fixture.server.shutDownQueue()
            withExtendedLifetime(client) {}
        }
    }

    /// Subscribers may stay connected forever and read nothing. A limit on their number leaves slots for other requests.
    @Test func limitsSubscribers() async throws {
        try await ControlFixture.with { fixture in
            // Starts the queue, so that each subscriber receives at least one event.
            try await fixture.queue.start()
            var subscribers: [RemoteQueueEvents.AsyncIterator] = []
            for _ in 0..<48 {
                var subscriber = fixture.remote.events(since: 0).makeAsyncIterator()
                _ = try await subscriber.next()
                subscribers.append(subscriber)
            }
            let error = await #expect(throws: QueueError.self) { for try await _ in fixture.remote.events(since: 0) { break } }
            #expect(error?.code == .tooManySubscribers)
            #expect(try await fixture.remote.status().sessions == 0)
            subscribers.removeLast()
            for try await _ in fixture.remote.events(since: 0) { break }
            withExtendedLifetime(subscribers) {}
        }
    }

    /// The server frees the slot of a disconnected subscriber, even if no event is due, and therefore no write fails.
    @Test func freesSlotsOfDisconnectedSubscribers() async throws {
        try await ControlFixture.with { fixture in
            try await fixture.queue.start()
            let remote = RemoteTransferQueue(folder: fixture.store, timeout: .seconds(20))
            for _ in 0..<70 {
                // Reads all events before disconnecting. Otherwise, the server would notice the disconnection when it sends the remaining
                // events.
                for try await event in remote.events(since: 0) {
                    if case .queueBecameIdle = event.kind { break }
                }
            }
            #expect(try await remote.status().sessions == 0)
        }
    }

    /// The server frees the slot of a client that requested a stop and disconnected, even before the running sessions have ended.
    @Test func freesSlotsOfDisconnectedWaiters() async throws {
        try await ControlFixture.with { fixture in
            let gate = fixture.memory.gate("a", atByte: 0)
            try await fixture.queue.enqueue(fixture.upload("a"))
            try await fixture.queue.start()
            try await gate.reached()
            do {
                let clients = try (0..<64).map { _ in try RawClient(fixture.store) }
                for client in clients {
                    try client.send(Self.greeting + Self.frame(#"{"stopAndWait":{"_0":"drain"}}"#))
                    #expect(await !client.readSome().isEmpty)
                }
            }
            let remote = RemoteTransferQueue(folder: fixture.store, timeout: .seconds(20))
            #expect(try await remote.status().mode == .draining)
            gate.open()
        }
    }

    @Test func rejectsTooLargeRequests() async throws {
        try await ControlFixture.with(requestLimit: 20_000) { fixture in
            let request = try fixture.upload("a")
            let requests = (0..<100).map { _ in
                var copy = request
                copy.id = SessionID()
                return copy
            }
            await #expect {
                try await fixture.remote.add(requests)
            } throws: {
                ($0 as? QueueError)?.code == .invalidRequest && ($0 as? QueueError)?.message.contains("20000 bytes") == true
            }
            #expect(try await fixture.remote.status().sessions == 0)
            // The context of this session exceeds the maximum size of a message.
            var large = request
            large.context = Data(#""\#(String(repeating: "x", count: 9 << 20))""#.utf8)
            await #expect { try await fixture.remote.add([large]) } throws: { ($0 as? QueueError)?.code == .invalidRequest }
            #expect(try await fixture.remote.add([request]) == [request.id])
        }
    }

    @Test func replacesStaleSocket() async throws {
        let fixture = try await ControlFixture()
        let socket = fixture.store.appending("control.sock")
        #expect(try FileManager.default.attributesOfItem(atPath: socket.string)[.posixPermissions] as? Int == 0o600)
        await fixture.server.shutDownQueue()
        #expect(FileManager.default.createFile(atPath: socket.string, contents: nil))
        let queue = try await TransferQueue(storage: .folder(fixture.store), transports: [])
        let server = try ControlServer(for: queue, logger: Logger(label: "test"))
        #expect(try await fixture.remote.status().mode == .stopped)
        await server.shutDownQueue()
    }

    /// A request waits for a disk that does not respond.
    @Test(.timeLimit(.minutes(1))) func shutsDownWhileRequestHangs() async throws {
        try await ControlFixture.with { fixture in
            let request = try fixture.upload("a")
            // All threads that may read new files in this folder hang.
            let disk = DispatchSemaphore(value: 0)
            let hanging = (0..<BlockingIO.Pool.requests.ownerLimit).map { _ in
                Task { await BlockingIO.run(.requests, for: .folder(fixture.folder)) { disk.wait() } }
            }
            let client = Task { try await fixture.remote.add([request]) }
            while !fixture.server.hasRequests { await Task.yield() }
            await fixture.server.shutDownQueue()
            for _ in hanging { disk.signal() }
            for call in hanging { await call.value }
            await #expect(throws: QueueError.self) { try await client.value }
        }
    }

    @Test(.timeLimit(.minutes(10))) func restoresRemovedSocket() async throws {
        try await ControlFixture.with { fixture in
            let socket = fixture.store.appending("control.sock").string
            try FileManager.default.removeItem(atPath: socket)
            while (try? await fixture.remote.status()) == nil { try Task.checkCancellation() }
            #expect(try FileManager.default.attributesOfItem(atPath: socket)[.posixPermissions] as? Int == 0o600)
            await fixture.server.shutDownQueue()
            #expect(!FileManager.default.fileExists(atPath: socket))
        }
    }

    /// The storage folder was moved, and a new folder is at its path. The owner of the old folder must not create a socket in the new
    /// folder, because it would then respond to clients of the new queue.
    @Test func leavesSocketToSuccessor() async throws {
        try await ControlFixture.with { fixture in
            let store = fixture.store
            try FileManager.default.moveItem(atPath: store.string, toPath: store.string + ".old")
            try FileManager.default.createDirectory(atPath: store.string, withIntermediateDirectories: false)
            fixture.server.restoreSocket()
            #expect(!FileManager.default.fileExists(atPath: store.appending("control.sock").string))
            try FileManager.default.removeItem(atPath: store.string)
            try FileManager.default.moveItem(atPath: store.string + ".old", toPath: store.string)
        }
    }

    /// The path of the socket is longer than a socket address allows (unix(7)).
    @Test func acceptsLongPath() async throws {
        let fixture = try await ControlFixture(name: String(repeating: "long-name/", count: 20) + UUID().uuidString)
        #expect(try await fixture.remote.status().sessions == 0)
        await fixture.server.shutDownQueue()
        #expect(!FileManager.default.fileExists(atPath: fixture.store.appending("control.sock").string))
    }

    static let greeting = frame(#"{"protocol":"transferkit-control","versions":[5]}"#)

    static func frame(_ text: String) -> Data {
        let length = UInt32(text.utf8.count)
        return Data([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }) + Data(text.utf8)
    }
}
