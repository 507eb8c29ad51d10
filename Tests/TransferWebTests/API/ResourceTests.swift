import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct ResourceTests {
    @Test func `links in the path of an upload are resolved unless the request allows links`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let source = try fixture.file("reel.mov")
            let link = source.removingLastComponent().appending("link")
            try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: source.string)
            for (policy, expected) in [(nil, source), ("skip", source), ("follow", link)] {
                let member = policy.map { #","symlinks":"\#($0)""# } ?? ""
                let body = #"{"account":"a","paths":["\#(link)"],"hold":true\#(member)}"#
                let added = try await client.post("/api/v1/sessions", json: body, ["Idempotency-Key": policy ?? "none"])
                let id = try #require(try added.object["id"] as? String, "\(added.body)")
                let items = try await client.get("/api/v1/sessions/\(id)/items").object["items"] as? [[String: Any]]
                #expect(items?.first?["source"] as? String == expected.string)
                #expect(items?.first?["destination"] as? String == "link")
                let repeated = try await client.post("/api/v1/sessions", json: body, ["Idempotency-Key": policy ?? "none"])
                #expect(repeated.status == 200, "\(repeated.body)")
            }
            let invalid = #"{"account":"a","paths":["\#(link)"],"symlinks":"some"}"#
            #expect(try await client.post("/api/v1/sessions", json: invalid).status == 400)
        }
    }

    @Test func `a repeated request with an idempotency key adds one session`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let source = try fixture.file("reel.mov")
            let body = #"{"account":"a","paths":["\#(source)"],"to":"day1","name":"Reel","tags":["x"],"hold":true}"#
            let first = try await client.post("/api/v1/sessions", json: body, ["Idempotency-Key": "k1"])
            #expect(first.status == 201, "\(first.body)")
            let id = try #require(try first.object["id"] as? String)
            #expect(first.headers["location"] == "/api/v1/sessions/\(id)")
            let second = try await client.post("/api/v1/sessions", json: body, ["Idempotency-Key": "k1"])
            #expect(second.status == 200)
            #expect(try second.object["id"] as? String == id)
            let third = try await client.post("/api/v1/sessions", json: body, ["Idempotency-Key": "k2"])
            #expect(third.status == 201)
            // Other content with the same key is rejected, not ignored.
            let other = body.replacing(source.string, with: try fixture.file("other.mov").string)
            let fourth = try await client.post("/api/v1/sessions", json: other, ["Idempotency-Key": "k1"])
            #expect(fourth.status == 422 && fourth.code == "idempotencyKeyReused", "\(fourth.body)")
            for (json, headers) in [(body, ["Idempotency-Key": " "]), (body.replacing("Reel", with: ""), [:])] {
                let reply = try await client.post("/api/v1/sessions", json: json, headers)
                #expect(reply.status == 400, "\(reply.status) \(reply.body)")
            }
            #expect(try await client.get("/api/v1/sessions?limt=1").status == 400)
            let session = try await client.get("/api/v1/sessions/\(id)").object
            #expect(session["name"] as? String == "Reel" && session["state"] as? String == "held" && session["tags"] as? [String] == ["x"])
            let items = try await client.get("/api/v1/sessions/\(id)/items").object["items"] as? [[String: Any]]
            #expect(items?.first?["destination"] as? String == "day1/reel.mov")
            #expect(items?.first?["source"] as? String == source.string)
        }
    }

    @Test func `requests for invalid sessions get a problem response`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let bodies: [(String, Int, String)] = [
                (#"{}"#, 400, "invalidRequest"), (#"{"account":"a","paths":[]}"#, 400, "invalidRequest"),
                (#"{"account":"a","paths":["relative"]}"#, 400, "invalidRequest"),
                (#"{"account":"a","paths":["/etc/hostname"],"direction":"sideways"}"#, 400, "invalidRequest"),
                (#"{"account":"a","paths":["/no/such/file"]}"#, 422, "unreadableItems"),
                (#"{"account":"b","paths":["/etc/hostname"]}"#, 404, "noSuchAccount"),
                (#"{"account":"a","paths":["/etc/hostname"],"to":"../up"}"#, 422, "unsafeName"),
                (#"{"account":"a","paths":["x"],"direction":"download"}"#, 400, "invalidRequest"),
                (#"{"account":"a","paths":["/etc/hostname"],"draft":true,"hold":true}"#, 400, "invalidRequest"),
            ]
            for (body, status, code) in bodies {
                let reply = try await client.post("/api/v1/sessions", json: body)
                #expect(reply.status == status, "\(body): \(reply.body)")
                #expect(reply.code == code, "\(body)")
            }
            let draft = try await client.post(
                "/api/v1/sessions", json: #"{"account":"a","paths":["/etc/hostname"],"draft":true}"#, ["Idempotency-Key": "k"])
            #expect(draft.status == 400 && draft.code == "invalidRequest", "\(draft.body)")
            #expect(draft.body.contains("draft") && draft.body.contains("Idempotency-Key"), "\(draft.body)")
            let status = await fixture.queue.status()
            #expect(status.sessions == 0 && status.drafts == 0)
        }
    }

    @Test func `lists have pages and filters`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let ids = try await fixture.add(25) { $0 % 5 == 0 ? "Reel \($0)" : "Still \($0)" }
            try await fixture.queue.apply(.cancel(), to: .sessions(Array(ids[0..<3])))
            var found: [String] = []
            var next: Int? = 0
            while let start = next {
                let page = try await client.get("/api/v1/sessions?from=\(start)&limit=10").object
                found += try #require(page["sessions"] as? [[String: Any]]).compactMap { $0["id"] as? String }
                next = page["next"] as? Int
                #expect(page["total"] as? Int == 25)
            }
            #expect(found == ids.map(\.description))
            func names(_ query: String) async throws -> [String] {
                let page = try await client.get("/api/v1/sessions?\(query)").object
                return try #require(page["sessions"] as? [[String: Any]]).compactMap { $0["name"] as? String }
            }
            #expect(try await names("state=cancelled") == ["Reel 0", "Still 1", "Still 2"])
            #expect(try await names("state=cancelled,held&name=reel").count == 5)
            #expect(try await names("name=reel&limit=2&from=6") == ["Reel 10", "Reel 15"])
            #expect(try await names("account=b").isEmpty)
            for query in ["state=flying", "from=-1", "limit=0", "limit=501", "from=x"] {
                #expect(try await client.get("/api/v1/sessions?\(query)").code == "invalidRequest", "\(query)")
            }
        }
    }

    @Test func `requests change the limits and the mode of the queue`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let reply = try await client.post(
                "/api/v1/queue/set", json: #"{"maxSessions":3,"rateLimit":1000,"minFree":5,"keepCompletedCount":9}"#)
            #expect(reply.status == 200, "\(reply.body)")
            var status = await fixture.queue.status()
            #expect(
                status.maxConcurrentSessions == 3 && status.rateLimit == 1_000 && status.diskFloor == 5 && status.retention == .count(9))
            #expect(try await client.post("/api/v1/queue/set", json: #"{"rateLimit":null,"keepCompletedSeconds":null}"#).status == 200)
            status = await fixture.queue.status()
            #expect(status.rateLimit == nil && status.retention == .keepAll && status.maxConcurrentSessions == 3)
            #expect(try await client.post("/api/v1/queue/start").object["mode"] as? String == "running")
            #expect(try await client.get("/api/v1/queue").object["mode"] as? String == "running")
            #expect(try await client.post("/api/v1/queue/drain").status == 200)
            #expect(try await client.post("/api/v1/queue/stop").status == 200)
            #expect(try await client.post("/api/v1/queue/set").status == 400)
        }
    }

    @Test func `a timetable is set, shown and removed by each client`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            for (text, shown) in [
                ("mon-fri 08:00-18:00 2M; * off", "mon-fri 08:00-18:00 2M; * off"), ("Sat,SUN  500K;", "sat-sun 500K"),
                ("fri-mon 22:00-06:00 1000/s", "mon,fri-sun 22:00-06:00 1000"), ("* 8:5-0:00 1.5K", "* 08:05-24:00 1536"),
                ("* 0", "* off"), ("tue 1G", "tue 1G"),
            ] {
                let body = try String(decoding: JSONSerialization.data(withJSONObject: ["timetable": text]), as: UTF8.self)
                #expect(try await client.post("/api/v1/queue/set", json: body).object["timetable"] as? String == shown, "\(text)")
                #expect(try await client.post("/api/v1/accounts/a/set", json: body).object["timetable"] as? String == shown)
                #expect(try await client.get("/api/v1/queue").object["timetable"] as? String == shown)
                #expect(try await fixture.browser().client.get("/").body.contains(shown))
            }
            for text in [
                "", ";", "*", "* fast", "mon-", "mon--fri 1M", "xyz 1M", "* 08:00 1M", "* 08:00-25:00 1M", "* 24:00-08:00 1M",
                "* 08:60-09:00 1M",
                "* -1", "* 08:00-09:00 1M off", "mon,,tue 1M", String(repeating: "* 1M;", count: 49),
            ] {
                let body = try String(decoding: JSONSerialization.data(withJSONObject: ["timetable": text]), as: UTF8.self)
                #expect(try await client.post("/api/v1/queue/set", json: body).code == "invalidRequest", "\(text)")
                #expect(try await client.post("/api/v1/accounts/a/set", json: body).code == "invalidRequest", "\(text)")
            }
            #expect(await fixture.queue.status().timetable?.rules.count == 1)
            // The page also shows the account's timetable.
            #expect(try await client.post("/api/v1/accounts/a/set", json: #"{"timetable":"wed 7M"}"#).status == 200)
            let page = try await fixture.browser().client.get("/").body
            let accounts = page.components(separatedBy: "<ul class=\"accounts\">").last ?? ""
            #expect(accounts.components(separatedBy: "</ul>").first?.contains("wed 7M") == true)
            #expect(try await client.post("/api/v1/queue/set", json: #"{"timetable":null}"#).object["timetable"] is NSNull)
            #expect(await fixture.queue.status().timetable == nil)
            // The page's form and the command also set and remove timetables.
            let (browser, form) = try await fixture.browser()
            let fields = [("form", form), ("do", "limits"), ("maxSessions", "2"), ("rateLimit", "1K"), ("timetable", "* 2K")]
            #expect(try await browser.post("/forms", form: fields).status == 303)
            let status = await fixture.queue.status()
            #expect(status.rateLimit == 1_024 && status.currentRateLimit == 2_048)
            try await Commands.run(["queue", "set", "--timetable", "none"], store: fixture.store)
            #expect(await fixture.queue.status().currentRateLimit == 1_024)
            try await Commands.run(["account", "edit", "a", "--timetable", "* 3K"], store: fixture.store)
            #expect(await fixture.queue.account("a")?.currentRateLimit == 3_072)
            try await Commands.run(["queue", "set", "--timetable", "sat-sun 500K; * off"], store: fixture.store)
            let lines = LineReader(try Commands.start(["queue", "status"], store: fixture.store))
            var text = ""
            while let line = try await lines.next() { text += line + "\n" }
            #expect(text.contains("Timetable: sat-sun 500K; * off\n") && text.contains("Rate now:  "))
        }
    }

    @Test func `accounts are saved, limited and removed`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let body = #"""
                {"endpoints":[{"transport":"memory","address":"memory://other/","credentials":[{"kind":"bearer","environment":"TOKEN"}],"settings":{}}],"maxSessions":2}
                """#
            let saved = try await client.send("PUT", "/api/v1/accounts/b", ["Content-Type": "application/json"], body: body)
            #expect(saved.status == 200, "\(saved.body)")
            #expect(try saved.object["maxSessions"] as? Int == 2)
            #expect(
                try await client.post("/api/v1/accounts/b/set", json: #"{"rateLimit":7,"maxSessions":null}"#).object["rateLimit"] as? Int
                    == 7)
            #expect(await fixture.queue.account("b")?.account.maxConcurrentSessions == nil)
            for verb in ["unblock", "retry"] { #expect(try await client.post("/api/v1/accounts/b/\(verb)").status == 200) }
            let secret = #"{"endpoints":[{"transport":"memory","address":"memory://x/","credentials":[{"kind":"bearer","value":"s"}]}]}"#
            #expect(try await client.send("PUT", "/api/v1/accounts/c", ["Content-Type": "application/json"], body: secret).status == 400)
            try await fixture.add(1)
            #expect(try await client.send("DELETE", "/api/v1/accounts/a").code == "accountInUse")
            #expect(try await client.send("DELETE", "/api/v1/accounts/b").status == 204)
            #expect(try await client.get("/api/v1/accounts/b").code == "noSuchAccount")
            #expect(try await client.get("/api/v1/accounts").object["accounts"] is [Any])
        }
    }

    /// The description of an account omits some properties and all secrets.
    @Test func `saving a described account keeps the properties that the description omits`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            var account = Account("b", endpoints: [Endpoint(transport: "memory", address: "memory://x/?signature=abc")])
            account.fallbackAfter = .seconds(7)
            account.fallsBackOnCredentials = true
            try await fixture.queue.save(account)
            let header = ["Content-Type": "application/json"]
            let described = try await client.get("/api/v1/accounts/b").object["endpoints"] as? [[String: Any]]
            let address = try #require(described?.first?["address"] as? String)
            #expect(!address.contains("abc"))
            let masked = #"{"endpoints":[{"transport":"memory","address":"\#(address)"}]}"#
            #expect(try await client.send("PUT", "/api/v1/accounts/b", header, body: masked).status == 400)
            #expect(await fixture.queue.account("b")?.account == account)
            let whole = #"{"endpoints":[{"transport":"memory","address":"memory://y/"}]}"#
            #expect(try await client.send("PUT", "/api/v1/accounts/b", header, body: whole).status == 200)
            let saved = await fixture.queue.account("b")?.account
            #expect(saved?.endpoints.map(\.address) == ["memory://y/"])
            #expect(saved?.fallbackAfter == .seconds(7) && saved?.fallsBackOnCredentials == true)
        }
    }

    @Test(.timeLimit(.minutes(5))) func `an account that another client changes at the same time is not overwritten`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let header = ["Content-Type": "application/json"]
            var hasConflict = false
            // The server reads the account and then replaces it. A conflict needs a change by another client between these steps.
            while !hasConflict {
                let replies = try await withThrowingTaskGroup(of: WebReply.self) { group in
                    for number in 1...16 {
                        group.addTask {
                            let body = #"{"endpoints":[{"transport":"memory","address":"memory://x/"}],"maxSessions":\#(number)}"#
                            return try await client.send("PUT", "/api/v1/accounts/a", header, body: body)
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                for reply in replies {
                    #expect(reply.status == 200 || reply.status == 409 && reply.code == "accountChanged", "\(reply.body)")
                    hasConflict = hasConflict || reply.status == 409
                }
                #expect(replies.contains { $0.status == 200 })
            }
        }
    }

    @Test(.timeLimit(.minutes(5))) func `the rates of accounts and their total are sampled`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client("web-read.token")
            try await fixture.queue.setMaxConcurrentSessions(2)
            try await fixture.queue.save(Account("b", endpoints: [fixture.memory.endpoint(host: "b")]))
            let large = try fixture.file("large", size: 4 << 20)
            let gates = ["a", "b"].map { fixture.memory.gate("large-\($0)", atByte: 2 << 20) }
            for name in ["a", "b"] {
                let items = [TransferItem(large, as: try RemotePath("large-\(name)"))]
                try await fixture.queue.add([.upload(items: items, to: name)], at: nil, held: false)
            }
            try await fixture.queue.start()
            for gate in gates { try await gate.reached() }
            var (last, accounts): (Int, [String: Double]) = (0, [:])
            while accounts["a", default: 0] <= 0 || accounts["b", default: 0] <= 0 {
                let rates = try await client.get("/api/v1/rates?after=\(last)").object
                #expect(rates["seconds"] as? Double == 2)
                let samples = try #require(rates["samples"] as? [[String: Any]])
                let number = try #require(rates["last"] as? Int)
                #expect(samples.count == number - last)
                last = number
                for sample in samples {
                    accounts = try #require(sample["accounts"] as? [String: Double])
                    let total = try #require(sample["rate"] as? Double)
                    #expect(abs(total - accounts.values.reduce(0, +)) < 1)
                }
            }
        }
    }

    @Test func `items have pages`() async throws {
        try await WebFixture.with { fixture in
            let source = try fixture.file("source")
            let items = (0..<7).map { TransferItem(source, as: "file\($0)") }
            let id = try await fixture.queue.add([.upload(items: items, to: "a")], at: nil, held: true)[0]
            var (next, names): (Int?, [String]) = (0, [])
            while let start = next {
                let page = try await fixture.client().get("/api/v1/sessions/\(id)/items?from=\(start)&limit=3").object
                names += try #require(page["items"] as? [[String: Any]]).compactMap { $0["destination"] as? String }
                next = page["next"] as? Int
            }
            #expect(names == (0..<7).map { "file\($0)" })
        }
    }

    @Test func `a change is visible in the next response, although responses are shared`() async throws {
        try await WebFixture.with {
            $0.limits.snapshotAge = .seconds(3_600)
        } _: { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            for (operation, state) in [("release", "waiting"), ("hold", "held"), ("cancel", "cancelled"), ("retry", "waiting")] {
                #expect(try await client.post("/api/v1/sessions/\(id)/\(operation)").status == 200)
                #expect(try await client.get("/api/v1/sessions/\(id)").object["state"] as? String == state)
            }
        }
    }
}
