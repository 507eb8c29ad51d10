import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct OrderTests {
    @Test func `a move with the current revision of the order succeeds, and one with an older revision changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(4)
            let list = try await client.get("/api/v1/sessions")
            let tag = try #require(list.headers["etag"])
            let first = try await client.post("/api/v1/sessions/\(ids[3])/move", json: #"{"before":"\#(ids[0])"}"#, ["If-Match": tag])
            #expect(first.status == 200)
            let order = await fixture.queue.sessionIDs()
            #expect(order == [ids[3], ids[0], ids[1], ids[2]])
            for place in [#""before":"\#(ids[1])""#, #""at":2"#, #""to":"front""#, #""to":"end""#] {
                let reply = try await client.post("/api/v1/sessions/\(ids[2])/move", json: "{\(place)}", ["If-Match": tag])
                #expect(reply.status == 412, "\(place)")
                #expect(reply.code == "staleOrder")
                let group = try await client.post(
                    "/api/v1/sessions/actions", json: #"{"operation":"move","ids":["\#(ids[2])","\#(ids[0])"],\#(place)}"#,
                    ["If-Match": tag])
                #expect(group.status == 412, "\(place)")
            }
            #expect(await fixture.queue.sessionIDs() == order)
            #expect(try await client.post("/api/v1/sessions/\(ids[2])/move", json: #"{"at":0}"#, ["If-Match": "\"x\""]).status == 400)
        }
    }

    @Test func `a place next to another session means the same with and without a revision`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(6)
            for moved in [[1], [4], [0, 1], [4, 5], [0, 5], [1, 4]] {
                for place in ["before", "after"] {
                    for target in 2...3 {
                        var expected = ids.indices.filter { !moved.contains($0) }
                        let index = try #require(expected.firstIndex(of: target))
                        expected.insert(contentsOf: moved, at: place == "before" ? index : index + 1)
                        for isConditional in [false, true] {
                            try await fixture.restore(ids)
                            let list = moved.map { "\"\(ids[$0])\"" }.joined(separator: ",")
                            let tag = try #require(try await client.get("/api/v1/sessions").headers["etag"])
                            let reply = try await client.post(
                                "/api/v1/sessions/actions", json: #"{"operation":"move","ids":[\#(list)],"\#(place)":"\#(ids[target])"}"#,
                                isConditional ? ["If-Match": tag] : [:])
                            #expect(reply.status == 200, "\(reply.body)")
                            let order = await fixture.queue.sessionIDs()
                            #expect(order == expected.map { ids[$0] }, "\(moved) \(place) \(target)")
                            // A session that already had its place counts as moved, as it does alone.
                            #expect(try reply.object["changed"] as? [String] == moved.map { ids[$0].description })
                            #expect(try (reply.object["refused"] as? [Any])?.isEmpty == true)
                        }
                    }
                }
            }
        }
    }

    @Test func `a draft gets its place`() async throws {
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

    @Test func `the command moves a group whose first sessions have their place already`() async throws {
        try await WebFixture.with { fixture in
            let ids = try await fixture.add(5)
            for (moved, place, expected) in [
                ([0, 1], 0, [0, 1, 2, 3, 4]), ([3, 4], 3, [0, 1, 2, 3, 4]), ([1, 4], 1, [0, 1, 4, 2, 3]),
            ] {
                try await fixture.restore(ids)
                try await Commands.run(["move"] + moved.map { ids[$0].description } + ["\(place)"], store: fixture.store)
                #expect(await fixture.queue.sessionIDs() == expected.map { ids[$0] }, "\(moved)")
            }
        }
    }

    @Test func `a move of a group refuses its drafts only`() async throws {
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
    /// Moves the sessions into this order.
    fileprivate func restore(_ ids: [SessionID]) async throws {
        for id in ids { try await queue.move(id, to: .end) }
    }
}
