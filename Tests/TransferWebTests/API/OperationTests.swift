import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct OperationTests {
    @Test func `each operation of the command works through the HTTP interface`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(3)
            func perform(_ operation: String, _ json: String = "{}", on index: Int = 0) async throws -> SessionStatus {
                let reply = try await client.post("/api/v1/sessions/\(ids[index])/\(operation)", json: json)
                #expect(reply.status == 200, "\(operation): \(reply.body)")
                return try await fixture.queue.status(of: ids[index])
            }
            #expect(try await perform("release").state == .waiting)
            #expect(try await perform("pause").state == .held)
            #expect(try await perform("resume").state == .waiting)
            #expect(try await perform("next").state == .waiting)
            #expect(try await perform("yield").state == .waiting)
            #expect(try await perform("hold").state == .held)
            #expect(try await perform("now").state == .waiting)
            #expect(try await perform("cancel", #"{"discard":true}"#).state == .cancelled)
            #expect(try await perform("retry").state == .waiting)
            let changed = try await perform(
                "set",
                #"{"rateLimit":500,"tags":["night"],"name":"new","notBefore":"2040-01-01T00:00:00Z","context":{"a":[1,null]},"deadline":60,"after":"\#(ids[1])"}"#
            )
            #expect(changed.rateLimit == 500 && changed.tags == ["night"] && changed.name == "new" && changed.deadline == .seconds(60))
            #expect(changed.dependency?.session == ids[1] && changed.notBefore != nil)
            let cleared = try await perform("set", #"{"rateLimit":null,"notBefore":null,"after":null,"context":null,"deadline":null}"#)
            #expect(cleared.rateLimit == nil && cleared.dependency == nil && cleared.notBefore == nil && cleared.context == nil)
            #expect(try await perform("move", #"{"to":"end"}"#).index == 2)
            #expect(try await perform("move", #"{"at":0}"#).index == 0)
            #expect(try await perform("move", #"{"after":"\#(ids[1])"}"#).index == 1)
            #expect(try await perform("move", #"{"before":"\#(ids[1])"}"#).index == 0)
            #expect(try await client.post("/api/v1/sessions/\(ids[0])/remove").status == 200)
            let gone = try await client.post("/api/v1/sessions/\(ids[0])/hold")
            #expect(gone.status == 404)
            #expect(gone.code == "noSuchSession")
            #expect(gone.headers["content-type"] == "application/problem+json")
        }
    }

    @Test func `an operation that the state forbids fails with the code and the message of the queue`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let error = await #expect(throws: QueueError.self) { try await fixture.queue.retry(id) }
            let reply = try await fixture.client().post("/api/v1/sessions/\(id)/retry")
            #expect(reply.status == 409)
            #expect(try reply.object["code"] as? String == error?.code.rawValue)
            #expect(try reply.object["detail"] as? String == error?.message)
            #expect(try reply.object["status"] as? Int == 409)
        }
    }

    @Test func `invalid requests get a problem response and change nothing`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            let bodies: [(String, String)] = [
                ("set", "{"), ("set", "[]"), ("set", "null"), ("set", "{}"), ("set", #"{"rateLimit":0}"#), ("set", #"{"rateLimit":1.5}"#),
                ("set", #"{"rateLimit":"500"}"#), ("set", #"{"ratelimit":500}"#), ("set", #"{"tags":"a"}"#), ("set", #"{"tags":[1]}"#),
                ("set", #"{"notBefore":"tomorrow"}"#), ("set", #"{"after":"x"}"#), ("set", #"{"rateLimit":99999999999999999999}"#),
                ("hold", #"{"x":1}"#), ("cancel", #"{"discard":1}"#), ("move", "{}"), ("move", #"{"at":-1}"#),
                ("move", #"{"at":0,"to":"front"}"#), ("move", #"{"to":"top"}"#),
                ("set", String(repeating: "[", count: 100_000)), ("set", #"{"name":"\ud800"}"#),
            ]
            for (operation, body) in bodies {
                let reply = try await client.post("/api/v1/sessions/\(id)/\(operation)", json: body)
                #expect(reply.status == 400, "\(operation) \(body.prefix(50)): \(reply.body)")
                #expect(reply.code == "invalidRequest")
            }
            #expect(try await client.post("/api/v1/sessions/\(id)/move", json: #"{"at":7}"#).code == "indexOutOfRange")
            #expect(try await client.post("/api/v1/sessions/\(id)/fly").status == 404)
            #expect(try await client.post("/api/v1/sessions/abc/hold").code == "noSuchSession")
            // The body of a change must be JSON, even without options.
            for header in [[:], ["Content-Type": "text/plain"]] {
                let reply = try await client.send("POST", "/api/v1/sessions/\(id)/cancel", header)
                #expect(reply.status == 415 && reply.code == "unsupportedMediaType", "\(header)")
            }
            let method = try await client.get("/api/v1/sessions/\(id)/hold")
            #expect(method.status == 405)
            #expect(method.headers["allow"] == "POST")
            #expect(try await client.send("DELETE", "/api/v1/queue").status == 405)
            let status = try await fixture.queue.status(of: id)
            #expect(status.state == .held && status.rateLimit == nil && status.name == "0")
        }
    }

    @Test func `an operation on several sessions lists the sessions that it can't change`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(4)
            try await fixture.queue.cancel(ids[1])
            let list = ids[0...2].map { "\"\($0)\"" }.joined(separator: ",")
            let reply = try await client.post("/api/v1/sessions/actions", json: #"{"operation":"release","ids":[\#(list)]}"#)
            #expect(reply.status == 200)
            #expect(try reply.object["changed"] as? [String] == [ids[0].description, ids[2].description])
            let refused = try #require(try reply.object["refused"] as? [[String: String]])
            #expect(refused.map { $0["id"] } == [ids[1].description] && refused[0]["code"] == "invalidTransition")
            let gone = SessionID()
            let rest = try await client.post(
                "/api/v1/sessions/actions", json: #"{"operation":"pause","ids":["\#(gone)","\#(ids[0])"]}"#)
            #expect(try rest.object["changed"] as? [String] == [ids[0].description], "\(rest.body)")
            #expect((try rest.object["refused"] as? [[String: String]])?.map { $0["code"] } == ["noSuchSession"])
            try await fixture.queue.update(ids[3], SessionUpdate(tags: ["night"]))
            let tagged = try await client.post("/api/v1/sessions/actions", json: #"{"operation":"release","ofTag":"night"}"#)
            #expect(try tagged.object["changed"] as? [String] == [ids[3].description], "\(tagged.body)")
            for selection in [#""ofAccount":"a""#, #""inState":"waiting""#, #""all":true"#] {
                #expect(try await client.post("/api/v1/sessions/actions", json: #"{"operation":"hold",\#(selection)}"#).status == 200)
            }
            for selection in [#""ids":[],"all":true"#, #""inState":"flying""#, #""ids":["x"]"#, #""x":1"#] {
                let reply = try await client.post("/api/v1/sessions/actions", json: #"{"operation":"hold",\#(selection)}"#)
                #expect([400, 404].contains(reply.status), "\(selection)")
            }
            #expect(try await client.post("/api/v1/sessions/actions", json: #"{"operation":"fly","all":true}"#).status == 400)
        }
    }
}
