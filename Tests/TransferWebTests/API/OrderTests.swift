import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct OrderTests {
    @Test func `a move with the current revision of the order succeeds, and a move with an older revision changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(4)
            let list = try await client.get("/api/v1/sessions")
            let tag = try #require(list.headers["etag"])
            let first = try await client.post("/api/v1/sessions/\(ids[3])/move", json: #"{"before":"\#(ids[0])"}"#, ["If-Match": tag])
            #expect(first.status == 200)
            let order = await fixture.queue.sessionIDs()
            #expect(order == [ids[3], ids[0], ids[1], ids[2]])
            for destination in [#""before":"\#(ids[1])""#, #""at":2"#, #""to":"front""#, #""to":"end""#] {
                let reply = try await client.post("/api/v1/sessions/\(ids[2])/move", json: "{\(destination)}", ["If-Match": tag])
                #expect(reply.status == 412, "\(destination)")
                #expect(reply.code == "staleOrder")
                let group = try await client.post(
                    "/api/v1/sessions/actions", json: #"{"operation":"move","ids":["\#(ids[2])","\#(ids[0])"],\#(destination)}"#,
                    ["If-Match": tag])
                #expect(group.status == 412, "\(destination)")
            }
            #expect(await fixture.queue.sessionIDs() == order)
            #expect(try await client.post("/api/v1/sessions/\(ids[2])/move", json: #"{"at":0}"#, ["If-Match": "\"x\""]).status == 400)
        }
    }

    @Test func `a position next to another session means the same with and without a revision`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(6)
            for moved in [[1], [4], [0, 1], [4, 5], [0, 5], [1, 4]] {
                for side in ["before", "after"] {
                    for target in 2...3 {
                        var expected = ids.indices.filter { !moved.contains($0) }
                        let index = try #require(expected.firstIndex(of: target))
                        expected.insert(contentsOf: moved, at: side == "before" ? index : index + 1)
                        for isConditional in [false, true] {
                            try await fixture.restore(ids)
                            let list = moved.map { "\"\(ids[$0])\"" }.joined(separator: ",")
                            let tag = try #require(try await client.get("/api/v1/sessions").headers["etag"])
                            let reply = try await client.post(
                                "/api/v1/sessions/actions", json: #"{"operation":"move","ids":[\#(list)],"\#(side)":"\#(ids[target])"}"#,
                                isConditional ? ["If-Match": tag] : [:])
                            #expect(reply.status == 200, "\(reply.body)")
                            let order = await fixture.queue.sessionIDs()
                            #expect(order == expected.map { ids[$0] }, "\(moved) \(side) \(target)")
                            // `changed` also contains sessions that already have their target position, as for a move of a single session.
                            #expect(try reply.object["changed"] as? [String] == moved.map { ids[$0].description })
                            #expect(try (reply.object["refused"] as? [Any])?.isEmpty == true)
                        }
                    }
                }
            }
        }
    }

    @Test func `a draft is enqueued after the given session`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(2)
            let source = try fixture.file("draft")
            let added = try await client.post("/api/v1/sessions", json: #"{"account":"a","paths":["\#(source)"],"draft":true}"#)
            let draft = try #require(try added.object["id"] as? String)
            let tag = try #require(try await client.get("/api/v1/queue").headers["etag"])
            let reply = try await client.post(
                "/api/v1/sessions/\(draft)/enqueue", json: #"{"after":"\#(ids[0])","hold":true}"#, ["If-Match": tag])
            #expect(reply.status == 200, "\(reply.body)")
            #expect(await fixture.queue.sessionIDs().map(\.description) == [ids[0].description, draft, ids[1].description])
        }
    }

    @Test func `a change with an older revision of the order changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let source = try fixture.file("new")
            let ids = try await fixture.add(4)
            let draft = try await fixture.queue.saveDrafts([.upload(items: [TransferItem(source, as: "draft")], to: "a")])[0]
            let old = try #require(try await client.get("/api/v1/queue").headers["etag"])
            try await fixture.queue.move(ids[0], to: .end)
            let order = await fixture.queue.sessionIDs()
            let body = #""account":"a","paths":["\#(source)"]"#
            let requests = [
                ("sessions/\(ids[0])/remove", "{}"), ("sessions/\(draft)/enqueue", "{}"), ("sessions/\(draft)/enqueue", #"{"at":1}"#),
                ("sessions/actions", #"{"operation":"remove","ids":["\#(ids[0])","\#(ids[1])"]}"#),
                ("sessions/actions", #"{"operation":"remove","all":true}"#), ("sessions", "{\(body)}"), ("sessions", "{\(body),\"at\":1}"),
                ("sessions", "{\(body),\"draft\":true}"), ("sessions/\(ids[0])/now", "{}"), ("accounts/a/set", #"{"rateLimit":5}"#),
            ]
            for (path, json) in requests {
                let reply = try await client.post("/api/v1/\(path)", json: json, ["If-Match": old])
                #expect(reply.status == 412 && reply.code == "staleOrder", "\(path) \(json): \(reply.status) \(reply.body)")
            }
            #expect(await fixture.queue.sessionIDs() == order)
            #expect(await fixture.queue.status().drafts == 1)
            let delete = try await client.send("DELETE", "/api/v1/accounts/a", ["If-Match": old])
            #expect(delete.code == "staleOrder")
            func tag() async throws -> [String: String] {
                ["If-Match": try #require(try await client.get("/api/v1/queue").headers["etag"])]
            }
            let added = try await client.post("/api/v1/sessions", json: "{\(body),\"at\":1}", try await tag())
            #expect(added.status == 201, "\(added.body)")
            let now = await fixture.queue.sessionIDs().map(\.description)
            #expect(now.dropFirst().first == (try added.object["id"] as? String))
            #expect(try await client.post("/api/v1/sessions/\(draft)/enqueue", json: #"{"at":0}"#, try await tag()).status == 200)
            #expect(await fixture.queue.sessionIDs().first == draft)
            #expect(try await client.post("/api/v1/sessions/\(ids[0])/remove", try await tag()).status == 200)
            #expect(await fixture.queue.status().sessions == 5)
        }
    }

    @Test func `a repeated addition with a key returns the first session, although the first request changed the order`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(2)
            let source = try fixture.file("new")
            let tag = try #require(try await client.get("/api/v1/queue").headers["etag"])
            let headers = ["If-Match": tag, "Idempotency-Key": "k-1"]
            let body = #""account":"a","paths":["\#(source)"],"hold":true"#
            let first = try await client.post("/api/v1/sessions", json: "{\(body),\"at\":2}", headers)
            #expect(first.status == 201, "\(first.body)")
            // The key still finds the session, although its file was removed and the index no longer exists.
            try await fixture.queue.remove(ids[0])
            try await fixture.queue.remove(ids[1])
            try FileManager.default.removeItem(atPath: source.string)
            let repeated = try await client.post("/api/v1/sessions", json: "{\(body),\"at\":2}", headers)
            #expect(repeated.status == 200, "\(repeated.body)")
            #expect(try repeated.object["id"] as? String == first.object["id"] as? String)
            #expect(await fixture.queue.status().sessions == 1)
            // With a new key, `If-Match` is still a condition.
            let other = try await client.post(
                "/api/v1/sessions", json: #"{"account":"a","paths":["\#(try fixture.file("other"))"]}"#,
                ["If-Match": tag, "Idempotency-Key": "k-2"])
            #expect(other.status == 412 && other.code == "staleOrder", "\(other.body)")
            #expect(await fixture.queue.status().sessions == 1)
        }
    }

    @Test func `a move returns the moves that undo it`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(6)
            for (moved, destination) in [
                ([4], #""at":0"#), ([1, 4, 2], #""to":"front""#), ([0, 5], #""after":"\#(ids[3])""#), ([0, 1, 2, 3, 4, 5], #""at":0"#),
                ([2, 3, 5], #""before":"\#(ids[0])""#),
            ] {
                let list = moved.map { "\"\(ids[$0])\"" }.joined(separator: ",")
                let tag = try #require(try await client.get("/api/v1/queue").headers["etag"])
                let reply = try await client.post(
                    "/api/v1/sessions/actions", json: #"{"operation":"move","ids":[\#(list)],\#(destination)}"#, ["If-Match": tag])
                let undo = try #require(try reply.object["undo"] as? [[String: String]], "\(reply.body)")
                #expect(undo.count == moved.count)
                // Each of these moves requires the revision of the order that the previous move returned.
                var current = try #require(try await client.get("/api/v1/queue").headers["etag"])
                for step in undo {
                    let id = try #require(step["id"])
                    let destination = step.filter { $0.key != "id" }
                    let body = String(decoding: try JSONSerialization.data(withJSONObject: destination), as: UTF8.self)
                    let reply = try await client.post("/api/v1/sessions/\(id)/move", json: body, ["If-Match": current])
                    #expect(reply.status == 200, "\(reply.body)")
                    let revision = try #require(try reply.object["orderRevision"] as? UInt64)
                    #expect(await fixture.queue.status().orderRevision == revision)
                    current = "\"order-\(revision)\""
                }
                #expect(await fixture.queue.sessionIDs() == ids, "\(moved)")
                guard current != tag else { continue }
                let step = try #require(undo.first?["id"])
                let late = try await client.post("/api/v1/sessions/\(step)/move", json: #"{"to":"front"}"#, ["If-Match": tag])
                #expect(late.status == 412 && late.code == "staleOrder")
            }
        }
    }

    @Test func `the command moves a group whose first sessions are already in position`() async throws {
        try await WebFixture.with { fixture in
            let ids = try await fixture.add(5)
            for (moved, destination, expected) in [
                ([0, 1], 0, [0, 1, 2, 3, 4]), ([3, 4], 3, [0, 1, 2, 3, 4]), ([1, 4], 1, [0, 1, 4, 2, 3]),
            ] {
                try await fixture.restore(ids)
                try await Commands.run(["move"] + moved.map { ids[$0].description } + ["\(destination)"], store: fixture.store)
                #expect(await fixture.queue.sessionIDs() == expected.map { ids[$0] }, "\(moved)")
            }
        }
    }

    @Test func `a move of a group rejects only its drafts`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(3)
            let source = try fixture.file("draft")
            let added = try await client.post("/api/v1/sessions", json: #"{"account":"a","paths":["\#(source)"],"draft":true}"#)
            let draft = try #require(try added.object["id"] as? String)
            let reply = try await client.post(
                "/api/v1/sessions/actions",
                json: #"{"operation":"move","ids":["\#(ids[0])","\#(draft)","\#(ids[2])"],"before":"\#(ids[1])"}"#)
            #expect(try reply.object["changed"] as? [String] == [ids[0].description, ids[2].description])
            #expect(try (reply.object["refused"] as? [[String: String]])?.map { $0["id"] } == [draft])
            #expect(await fixture.queue.sessionIDs() == [ids[0], ids[2], ids[1]])
        }
    }
}

extension WebFixture {
    fileprivate func restore(_ ids: [SessionID]) async throws {
        for id in ids { try await queue.move(id, to: .end) }
    }
}
