import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct LimitTests {
    @Test func `a large body is rejected, with and without its length`() async throws {
        try await WebFixture.with {
            $0.limits.bodySize = 1_000
        } _: { fixture in
            let client = try fixture.client()
            let body = "{\"name\":\"\(String(repeating: "a", count: 2_000))\"}"
            let reply = try await client.post("/api/v1/sessions", json: body)
            #expect(reply.status == 413)
            #expect(reply.code == "bodyTooLarge")
            let chunk = String(repeating: "a", count: 600)
            let socket = try WebConnection(port: fixture.port)
            let head = client.head("POST", "/api/v1/sessions", ["Content-Type": "application/json", "Transfer-Encoding": "chunked"])
            try socket.send(head + "258\r\n\(chunk)\r\n258\r\n\(chunk)\r\n0\r\n\r\n")
            #expect(try await WebReply(socket.readToEnd()).status == 413)
            #expect(try await client.post("/api/v1/sessions", json: "{}").status == 400)
        }
    }

    @Test func `large headers end the connection`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let socket = try WebConnection(port: fixture.port)
            try socket.send(client.head("GET", "/api/v1/queue", ["X-Large": String(repeating: "a", count: 20_000)]))
            #expect(try await WebReply(socket.readToEnd()).status == 400)
            #expect(try await client.get("/api/v1/queue").status == 200)
        }
    }

    @Test func `a client that sends its request slowly is disconnected`() async throws {
        try await WebFixture.with {
            ($0.limits.headTime, $0.limits.bodyTime) = (1, 1)
        } _: { fixture in
            let client = try fixture.client()
            let (head, body) = (try WebConnection(port: fixture.port), try WebConnection(port: fixture.port))
            try head.send("GET /api/v1/queue HTTP/1.1\r\nHost: local")
            try body.send(client.head("POST", "/api/v1/sessions", ["Content-Type": "application/json"], length: 100) + "{")
            #expect(await head.readToEnd().isEmpty)
            _ = await body.readToEnd()
            #expect(try await client.get("/api/v1/queue").status == 200)
        }
    }

    @Test func `a client that reads no events is disconnected`() async throws {
        try await WebFixture.with {
            ($0.limits.eventClients, $0.limits.writeTime) = (1, 1_000)
            // Only a blocked write shows the server that the client does not read. Heartbeats cause more writes.
            $0.limits.heartbeat = .milliseconds(100)
        } _: { fixture in
            let ids = try await fixture.add(2_000)
            let client = try fixture.client()
            let socket = try WebConnection(port: fixture.port, receiveBuffer: 4_096)
            try socket.send(client.head("GET", "/api/v1/events", version: "1.0"))
            // Each of these events names all sessions. Together, the events are larger than the buffers of both sockets.
            for _ in 0..<60 {
                try await fixture.queue.apply(.release, to: .sessions(ids))
                try await fixture.queue.apply(.hold, to: .sessions(ids))
            }
            let other = try await client.get("/api/v1/queue")
            #expect(other.status == 200)
            // The server closes the connection although the client has not read everything.
            _ = await socket.readToEnd()
            // Another client can read events once the server has handled the end of the connection.
            while try await !client.get("/metrics").body.contains("transferq_web_event_clients 0.0\n") {}
            let reader = try await EventReader(client)
            reader.disconnect()
        }
    }

    @Test func `too many event clients are rejected`() async throws {
        try await WebFixture.with {
            $0.limits.eventClients = 2
        } _: { fixture in
            let client = try fixture.client()
            let readers = [try await EventReader(client), try await EventReader(client)]
            let reply = try await client.get("/api/v1/events")
            #expect(reply.status == 503)
            #expect(reply.code == "tooManySubscribers" && reply.headers["retry-after"] != nil)
            for reader in readers { reader.disconnect() }
        }
    }

    @Test(.timeLimit(.minutes(5))) func `a client that does not read its responses is disconnected, and a waiting client is then served`()
        async throws
    {
        try await WebFixture.with {
            ($0.limits.connections, $0.limits.writeTime) = (1, 1_000)
        } _: { fixture in
            try await fixture.add(500) { "a long name of session \($0)" }
            let client = try fixture.client()
            let socket = try WebConnection(port: fixture.port, receiveBuffer: 4_096)
            // Together, the responses are larger than the buffers of both sockets.
            let request = client.head("GET", "/api/v1/sessions?limit=500", ["Connection": "keep-alive"])
            try socket.send(String(repeating: request, count: 1_000))
            // Wait for the first response. Otherwise, the server could accept the other connection first.
            _ = await socket.readSome()
            // The first client uses the only connection until the server closes it.
            #expect(try await client.get("/api/v1/queue").status == 200)
            let received = await socket.readToEnd()
            #expect(String(decoding: received, as: UTF8.self).components(separatedBy: "HTTP/1.1 200").count - 1 < 1_000)
        }
    }

    @Test(.timeLimit(.minutes(5))) func `a connection above the limit waits until another one ends`() async throws {
        try await WebFixture.with {
            $0.limits.connections = 2
        } _: { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            let readers = [try await EventReader(client), try await EventReader(client)]
            let waiting = try WebConnection(port: fixture.port)
            try waiting.send(client.head("GET", "/api/v1/sessions/\(id)"))
            try await fixture.queue.update(id, SessionUpdate(name: "later"))
            readers[0].disconnect()
            // The server responds only now, so the response has the new name.
            #expect(try await WebReply(waiting.readToEnd()).object["name"] as? String == "later")
            readers[1].disconnect()
        }
    }

    @Test func `too many requests are rejected`() async throws {
        try await WebFixture.with {
            ($0.limits.requestBurst, $0.limits.requestsPerSecond) = (12, 0.000_01)
        } _: { fixture in
            let client = try fixture.client(nil)
            for _ in 0..<3 { #expect(try await client.get("/api/v1/queue").status == 401) }
            let reply = try await client.get("/api/v1/queue")
            #expect(reply.status == 429)
            #expect(reply.headers["retry-after"] != nil)
            // Requests without a token don't use up the limit of other clients.
            let known = try fixture.client()
            for _ in 0..<12 { #expect(try await known.get("/api/v1/queue").status == 200) }
            #expect(try await known.get("/api/v1/queue").status == 429)
        }
    }

    @Test func `the path of a request can't reach a file`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let paths = [
                "/../web.token", "/%2e%2e/web.token", "//web.token", "/page.js/../../web.token", "/page.js%00", "/./",
                "/api/v1/../../web.token",
                "/api/v1/sessions/..%2f..%2fweb.token", "/api/v1/accounts/%2e%2e", "/%", "/%ff", "/web.token", "/..\\web.token",
                "*",
            ]
            for path in paths {
                let reply = try await client.get(path)
                #expect([400, 404].contains(reply.status), "\(path)")
                #expect(try !reply.body.contains(fixture.token()))
            }
        }
    }
}
