import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct PageContentTests {
    private static let markup = "<img src=x onerror=alert(1)>\u{202E}"

    private func expectText(_ page: String, _ location: String) {
        #expect(!page.contains("<img src=x") && !page.contains("\u{202E}"), "\(location)")
        #expect(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "\(location)")
    }

    @Test func `names of files and accounts, errors and rejected forms can't become markup`() async throws {
        try await WebFixture.with { fixture in
            let markup = Self.markup.filter { $0 != "\u{202E}" }
            try await fixture.queue.save(Account("account \(markup)", endpoints: [fixture.memory.endpoint(host: "b")]))
            let source = try fixture.file("file \(Self.markup)")
            let id = try await fixture.queue.add(
                [.upload(items: [TransferItem(source, as: RemotePath("remote"))], to: "account \(markup)", name: "plain")], at: nil,
                held: false)[0]
            fixture.memory.failNext(with: TransferError(.permanent, .tooLarge, "The server reports \(Self.markup)."), for: "remote")
            try await fixture.queue.start()
            await fixture.queue.waitUntilIdle()
            let (browser, form) = try await fixture.browser()
            let page = try await browser.get("/").body
            expectText(page.components(separatedBy: "id=\"accounts\"").last ?? "", "the accounts")
            expectText(page.components(separatedBy: "id=\"log\"").last ?? "", "the log")
            expectText(page.components(separatedBy: "class=\"rows\"").last ?? "", "the rows")
            let detail = try await browser.get("/?session=\(id)").body
            expectText(detail.components(separatedBy: "<h3>Items</h3>").last ?? "", "the items")
            let parts = try await browser.get("/parts?session=\(id)").object
            for name in ["rows", "log", "accounts", "detail"] { expectText(try #require(parts[name] as? String), name) }
            // The confirmation repeats the fields of the form.
            let fields = [("form", form), ("do", "remove"), ("id", "\(id)"), ("x", "\"\(Self.markup)")]
            expectText(try await browser.post("/forms", form: fields).body, "the confirmation")
            let rejected = [("form", form), ("do", "add"), ("account", "a"), ("paths", "/\(Self.markup)")]
            expectText(try await browser.post("/forms", form: rejected).body, "the message")
        }
    }

    @Test func `a running session shows its progress, its endpoint and its rate`() async throws {
        try await WebFixture.with { fixture in
            let large = try fixture.file("large", size: 4 << 20)
            let gate = fixture.memory.gate("large", atByte: 2 << 20)
            try await fixture.queue.add([.upload(items: [TransferItem(large, as: "large")], to: "a", name: "Reel")], at: nil, held: false)
            try await fixture.queue.start()
            try await gate.reached()
            let (browser, _) = try await fixture.browser()
            var row = ""
            // The row and the totals show a rate only after the queue has measured one.
            while !row.contains("/s") || !row.contains("left") {
                row = try await browser.get("/").body.components(separatedBy: "<li class=\"row\"").last ?? ""
            }
            #expect(row.contains("data-state=\"running\"") && row.contains("memory://memory"))
            let value = try #require(row.firstMatch(of: #/<progress max="1000" value="(?<value>\d+)"/#).flatMap { Int($0.output.value) })
            #expect((400...600).contains(value))
            #expect(row.contains(" of 4.00 MiB"), "\(row)")
            let page = try await browser.get("/").body
            #expect(page.contains("data-mode=\"running\">running<"))
            gate.open()
            await fixture.queue.waitUntilIdle()
            try await fixture.queue.stopAndWait()
            #expect(try await browser.get("/").body.contains("data-mode=\"stopped\">stopped<"))
            while !row.contains("data-state=\"completed\"") {
                row = try await browser.get("/").body.components(separatedBy: "<li class=\"row\"").last ?? ""
            }
            #expect(row.contains("<span>average "), "\(row)")
        }
    }

    @Test func `a blocked account shows the reason, and a form unblocks it`() async throws {
        try await WebFixture.with { fixture in
            let source = try fixture.file("source")
            fixture.memory.failNext(with: TransferError(.credentials, .credentialsRejected, "The token has expired."), for: "x")
            try await fixture.queue.add([.upload(items: [TransferItem(source, as: "x")], to: "a")], at: nil, held: false)
            try await fixture.queue.start()
            await fixture.queue.waitUntilIdle()
            let (browser, form) = try await fixture.browser()
            let accounts = try await browser.get("/").body.components(separatedBy: "id=\"accounts\"").last ?? ""
            #expect(
                accounts.contains("badge bad") && accounts.contains("The token has expired.") && accounts.contains("Unblock a</button>"))
            #expect(try await browser.post("/forms", form: [("form", form), ("do", "unblock"), ("account", "a")]).status == 303)
            await fixture.queue.waitUntilIdle()
            #expect(await fixture.queue.account("a")?.blockingError == nil)
            #expect(try await browser.get("/").body.contains("badge good"))
            #expect(try await !fixture.browser("web-read.token").client.get("/").body.contains("value=\"unblock\""))
        }
    }

    @Test func `the page stays readable after sessions were removed`() async throws {
        try await WebFixture.with { fixture in
            let ids = try await fixture.add(3) { "session \($0)" }
            let (browser, _) = try await fixture.browser()
            try await fixture.queue.remove(ids[1])
            // The log of the page contains the event of the removed session.
            var page = try await browser.get("/")
            while page.status == 200, !(page.body.components(separatedBy: "id=\"log\"").last ?? "").contains("removed") {
                page = try await browser.get("/")
            }
            #expect(page.status == 200 && page.body.contains("session 2"), "\(page.body.prefix(500))")
            #expect(!page.body.contains("data-id=\"\(ids[1])\""))
            #expect(try await browser.get("/parts").status == 200)
            #expect(try await fixture.queue.sessions(in: .sessions(ids)).map(\.id) == [ids[0], ids[2]])
        }
    }

    @Test func `the page shows when the queue retries an account without an available endpoint`() async throws {
        try await WebFixture.with { fixture in
            let busy = TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(3_600))
            fixture.memory.failNext(with: busy, for: "x")
            let events = fixture.queue.events
            let item = TransferItem(try fixture.file("source"), as: "x")
            try await fixture.queue.add([.upload(items: [item], to: "a")], at: nil, held: false)
            try await fixture.queue.start()
            for await event in events where event.kind.name == "attemptFailed" { break }
            let (browser, _) = try await fixture.browser()
            let accounts = try await browser.get("/").body.components(separatedBy: "id=\"accounts\"").last ?? ""
            #expect(accounts.contains("badge bad\">unavailable") && accounts.contains("is unavailable until "), "\(accounts.prefix(2_000))")
            #expect(try await browser.get("/metrics").body.contains("transferq_account_unavailable{account=\"a\"} 1"))
            let outage = try #require(await fixture.queue.account("a")?.unavailableEndpoints.first)
            let account = try await browser.get("/api/v1/accounts/a").object
            let reported = try #require((account["unavailable"] as? [[String: Any]])?.first)
            #expect(reported["address"] as? String == outage.location && reported["nextAttempt"] as? String != nil)
            try await fixture.queue.retryEndpoints(of: "a")
            await fixture.queue.waitUntilIdle()
            #expect(try await browser.get("/").body.contains("badge good"))
        }
    }

    @Test func `the items of a session have pages`() async throws {
        try await WebFixture.with { fixture in
            let source = try fixture.file("source")
            let items = (0..<120).map { TransferItem(source, as: "file\($0)") }
            let id = try await fixture.queue.add([.upload(items: items, to: "a")], at: nil, held: true)[0]
            let (browser, _) = try await fixture.browser()
            var (path, positions) = ("/?session=\(id)", [Int]())
            while true {
                let page = try await browser.get(path).body
                let found = page.matches(of: #/<li value="(?<position>\d+)"/#).compactMap { Int($0.output.position) }
                #expect(found.count <= 50)
                positions += found
                guard let link = page.firstMatch(of: #/<a href="(?<target>[^"]*)">More items</a>/#) else { break }
                path = String(link.output.target).replacing("&amp;", with: "&")
            }
            #expect(positions.count == 120 && Set(positions).count == 120)
            var (next, count): (Int?, Int) = (0, 0)
            while let start = next {
                let page = try await browser.get("/api/v1/sessions/\(id)/items?from=\(start)&limit=500").object
                count += (page["items"] as? [Any])?.count ?? 0
                next = page["next"] as? Int
            }
            #expect(count == 120)
        }
    }

    @Test func `a page of items has the same size in a session of 20,000 items`() async throws {
        try await WebFixture.with { fixture in
            let source = try fixture.file("source")
            let count = 20_000
            let items = try (0..<count).map { TransferItem(source, as: try RemotePath("file\($0)")) }
            let id = try await fixture.queue.add([.upload(items: items, to: "a")], at: nil, held: true)[0]
            let (browser, _) = try await fixture.browser()
            for start in [0, count / 2, count - 51] {
                let page = try await browser.get("/?session=\(id)&items=\(start)").body
                #expect(page.matches(of: #/<li value="\d+"/#).count == 50 && page.utf8.count < 50_000, "\(page.utf8.count)")
                #expect(page.contains("<li value=\"\(start)\">") && page.contains("items=\(start + 50)\">More items"))
            }
            let last = try await browser.get("/?session=\(id)&items=\(count - 1)").body
            #expect(last.contains("<li value=\"\(count - 1)\">") && !last.contains("More items"))
            #expect(try await browser.get("/").body.utf8.count < 50_000)
        }
    }

    @Test func `forms without a script pause, resume, yield, drain and enqueue`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let large = try fixture.file("large", size: 4 << 20)
            let gate = fixture.memory.gate("large", atByte: 1 << 20)
            func add(_ name: String, _ held: Bool) async throws -> SessionID {
                try await fixture.queue.add([.upload(items: [TransferItem(large, as: RemotePath(name))], to: "a")], at: nil, held: held)[0]
            }
            let (running, waiting) = (try await add("large", false), try await add("other", true))
            func act(_ action: String, _ id: SessionID? = nil, _ fields: [(String, String)] = []) async throws {
                let reply = try await browser.post(
                    "/forms", form: [("form", form), ("do", action)] + (id.map { [("id", "\($0)")] } ?? []) + fields)
                #expect(reply.status == 303, "\(action): \(reply.body.suffix(500))")
            }
            func state(_ id: SessionID) async throws -> SessionState { try await fixture.queue.status(of: id).state }
            try await fixture.queue.setMaxConcurrentSessions(1)
            try await act("start")
            try await gate.reached()
            try await act("pause", running)
            #expect(try await state(running) == .paused)
            try await act("resume", running)
            #expect(try await state(running) == .running)
            try await act("release", waiting)
            try await act("next", waiting)
            let events = fixture.queue.events
            try await act("yield", running)
            // The session that runs next gets the slot.
            for await event in events where event.session == waiting && event.kind.name == "didActivate" { break }
            try await act("drain")
            #expect([.draining, .stopped].contains(await fixture.queue.status().mode))
            gate.open()
            let source = try fixture.file("draft")
            let draft = try await fixture.queue.saveDrafts([.upload(items: [TransferItem(source, as: "draft")], to: "a")])[0]
            #expect(try await browser.get("/?view=drafts").body.contains("\(draft)"))
            #expect(try await browser.get("/?session=\(draft)").body.contains("value=\"enqueue\""))
            try await act("enqueue", draft)
            #expect(try await state(draft) == .waiting)
            // The user presses Enter in a field of the toolbar.
            try await act("default", draft, [("at", "0"), ("rate", "")])
            #expect(try await fixture.queue.status(of: draft).index == 0)
            try await act("default", draft, [("at", ""), ("rate", "5K")])
            #expect(try await fixture.queue.status(of: draft).rateLimit == 5 << 10)
            let nothing = try await browser.post("/forms", form: [("form", form), ("do", "default"), ("id", "\(draft)")])
            #expect(nothing.status == 400 && nothing.body.contains("Choose an action."))
        }
    }
}
