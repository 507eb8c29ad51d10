import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct PageTests {
    @Test func `names can't become markup or reverse the text`() async throws {
        try await WebFixture.with { fixture in
            let name = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202E}gpj.exe"
            let ids = try await fixture.add(1) { _ in name }
            try await fixture.queue.update(ids[0], SessionUpdate(tags: ["<b>tag</b>"]))
            let (browser, _) = try await fixture.browser()
            let pages = [
                try await browser.get("/").body, try await browser.get("/?session=\(ids[0])").body,
                try await browser.get("/parts?session=\(ids[0])").body, try await browser.get("/?name=%22%3E%3Cscript%3E&tag=%3Cb%3E").body,
                try await browser.get("/?view=%3Cscript%3E").body,
            ]
            for page in pages {
                #expect(
                    !page.contains("<script>") && !page.contains("<img src=x") && !page.contains("<b>tag") && !page.contains("\u{202E}"))
            }
            #expect(pages[0].contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;"))
        }
    }

    @Test func `forms perform each action without a script`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let ids = try await fixture.add(3)
            func act(_ action: String, _ fields: [(String, String)]) async throws -> WebReply {
                try await browser.post("/forms", form: [("form", form), ("do", action)] + fields)
            }
            func select(_ indices: Int...) -> [(String, String)] { indices.map { ("id", ids[$0].description) } }
            for (action, state) in [
                ("release", SessionState.waiting), ("hold", .held), ("now", .waiting), ("cancel", .cancelled), ("retry", .waiting),
            ] {
                let reply = try await act(action, select(0, 1))
                #expect(reply.status == 303 && reply.headers["location"] == "/", "\(action) \(reply.status)")
                #expect(try await fixture.queue.status(of: ids[0]).state == state)
                #expect(try await fixture.queue.status(of: ids[1]).state == state)
            }
            #expect(try await act("move", select(0) + [("at", "2")]).status == 303)
            #expect(try await fixture.queue.status(of: ids[0]).index == 2)
            #expect(try await act("rate", select(0) + [("rate", "2M")]).status == 303)
            #expect(try await fixture.queue.status(of: ids[0]).rateLimit == 2 << 20)
            #expect(try await act("set", select(0) + [("name", "New"), ("tags", "a, b,"), ("rate", "")]).status == 303)
            let changed = try await fixture.queue.status(of: ids[0])
            #expect(changed.name == "New" && changed.tags == ["a", "b"] && changed.rateLimit == nil)
            let source = try fixture.file("added")
            #expect(
                try await act("add", [("account", "a"), ("direction", "upload"), ("paths", "\(source)\r\n"), ("to", ""), ("hold", "true")])
                    .status == 303)
            #expect(await fixture.queue.status().sessions == 4)
            #expect(try await act("limits", [("maxSessions", "4"), ("rateLimit", "1M")]).status == 303)
            #expect(await fixture.queue.status().maxConcurrentSessions == 4)
            #expect(try await act("start", []).status == 303)
            #expect(try await act("stop", []).status == 303)
            let question = try await act("remove", select(1))
            #expect(question.status == 200 && question.body.contains("Remove 1 session?"))
            #expect(await fixture.queue.status().sessions == 4)
            #expect(try await act("remove", select(1) + [("confirm", "yes")]).status == 303)
            #expect(await fixture.queue.status().sessions == 3)
        }
    }

    @Test func `a form changes only the edited fields`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let id = try await fixture.add(1) { _ in "tab\tname" }[0]
            try await fixture.queue.update(id, SessionUpdate(tags: ["day 2", "<b>"]))
            let page = try await browser.get("/?session=\(id)").body
            /// Sends the form as a browser does after a user has typed these values.
            func save(_ typed: [String: String]) async throws -> WebReply {
                let pattern = #/<input (?:type="hidden" )?name="(?<name>(?:name|tags|rate)(?:Before)?)" value="(?<value>[^"]*)"/#
                let fields = page.matches(of: pattern).map { match in
                    let name = String(match.output.name)
                    return (name, typed[name] ?? String(match.output.value).replacing("&lt;", with: "<").replacing("&gt;", with: ">"))
                }
                #expect(fields.map(\.0) == ["name", "nameBefore", "tags", "tagsBefore", "rate", "rateBefore"])
                return try await browser.post("/forms", form: [("form", form), ("do", "set"), ("id", "\(id)")] + fields)
            }
            #expect(try await save(["rate": "2M"]).status == 303)
            var changed = try await fixture.queue.status(of: id)
            #expect(changed.rateLimit == 2 << 20)
            #expect(changed.tags == ["<b>", "day 2"])
            #expect(changed.name == "tab\tname")
            // The form of this page has the values from before the first form changed the rate.
            #expect(try await save(["tags": "day 2, day 3"]).status == 303)
            changed = try await fixture.queue.status(of: id)
            #expect(changed.rateLimit == 2 << 20)
            #expect(changed.tags == ["day 2", "day 3"])
            #expect(changed.name == "tab\tname")
            #expect(try await save([:]).status == 303)
            #expect(try await fixture.queue.status(of: id) == changed)
        }
    }

    @Test func `the form of the limits keeps changes by another client`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let page = try await browser.get("/").body
            let limit = try #require(page.firstMatch(of: #/name="maxSessionsBefore" value="(\d+)"/#)).output.1
            try await fixture.queue.setRateLimit(3_000_000)
            let reply = try await browser.post(
                "/forms",
                form: [
                    ("form", form), ("do", "limits"), ("maxSessionsBefore", String(limit)), ("maxSessions", "5"), ("rateLimitBefore", ""),
                    ("rateLimit", ""), ("timetableBefore", ""), ("timetable", ""),
                ])
            #expect(reply.status == 303)
            let status = await fixture.queue.status()
            #expect(status.maxConcurrentSessions == 5 && status.rateLimit == 3_000_000)
        }
    }

    @Test func `a rejected form shows the reason`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let id = try await fixture.add(1)[0]
            let cases: [([(String, String)], Int, String)] = [
                ([("do", "retry"), ("id", "\(id)")], 409, "can&#39;t be retried"), ([("do", "hold")], 400, "Select the sessions first."),
                ([("do", "rate"), ("rate", "fast"), ("id", "\(id)")], 400, "is not a rate"),
                ([("do", "fly"), ("id", "\(id)")], 400, "There is no operation fly"),
                ([("do", "add"), ("account", "a"), ("paths", "/no/such/file")], 422, "/no/such/file"),
            ]
            for (fields, status, text) in cases {
                let reply = try await browser.post("/forms", form: [("form", form)] + fields)
                #expect(reply.status == status, "\(fields)")
                #expect(reply.body.contains(text) && reply.body.contains("role=\"alert\""), "\(fields) \(reply.body.suffix(2_000))")
            }
        }
    }

    @Test func `views and pages list their sessions, and empty lists explain why they are empty`() async throws {
        try await WebFixture.with { fixture in
            let (browser, _) = try await fixture.browser()
            #expect(try await browser.get("/").body.contains("The queue is empty."))
            #expect(try await browser.get("/?view=history").body.contains("No session has ended yet."))
            #expect(try await browser.get("/?view=drafts").body.contains("There are no drafts."))
            let ids = try await fixture.add(120)
            try await fixture.queue.cancel(ids[5])
            let first = try await browser.get("/").body
            #expect(
                first.contains("href=\"/?from=100&amp;limit=100\"") && first.contains(ids[99].description)
                    && !first.contains(ids[100].description))
            let second = try await browser.get("/?from=100&limit=100").body
            #expect(second.contains(ids[119].description) && second.contains(">Previous</a>"))
            let history = try await browser.get("/?view=history").body
            #expect(history.contains(ids[5].description) && !history.contains(ids[6].description))
            #expect(try await browser.get("/?view=active").body.contains(ids[6].description))
            #expect(try await browser.get("/?session=\(ids[5])").body.contains("id=\"detail\""))
            #expect(try await browser.get("/?session=\(SessionID())").status == 404)
        }
    }

    @Test func `a filter without matches offers all sessions of the view`() async throws {
        try await WebFixture.with { fixture in
            let (browser, _) = try await fixture.browser()
            let ids = try await fixture.add(2)
            try await fixture.queue.cancel(ids[0])
            let source = try fixture.file("draft")
            try await fixture.queue.saveDrafts([.upload(items: [TransferItem(source, as: "draft")], to: "a")])
            for filter in ["name=unknown", "account=unknown", "tag=unknown"] {
                let history = try await browser.get("/?view=history&\(filter)").body
                #expect(!history.contains("No session has ended yet.") && history.contains("No ended session matches."), "\(filter)")
                #expect(history.contains("<a href=\"/?view=history\">Show all ended sessions</a>"), "\(filter)")
                let drafts = try await browser.get("/?view=drafts&\(filter)").body
                #expect(!drafts.contains("There are no drafts.") && drafts.contains("No draft matches."), "\(filter)")
                #expect(drafts.contains("<a href=\"/?view=drafts\">Show all drafts</a>"), "\(filter)")
                let queue = try await browser.get("/?\(filter)").body
                #expect(queue.contains("No session matches.") && queue.contains("<a href=\"/\">Show all sessions</a>"), "\(filter)")
            }
        }
    }

    @Test func `a page after the end of the list offers the first page`() async throws {
        try await WebFixture.with { fixture in
            let (browser, _) = try await fixture.browser()
            let ids = try await fixture.add(2)
            try await fixture.queue.cancel(ids[0])
            let source = try fixture.file("draft")
            try await fixture.queue.saveDrafts([.upload(items: [TransferItem(source, as: "draft")], to: "a")])
            for (view, text) in [
                ("", "The queue has no session from #5 on."), ("&view=history", "No session from #5 on matches."),
                ("&view=drafts", "There are no more drafts."),
            ] {
                let page = try await browser.get("/?from=5&limit=100\(view)").body
                let link = "<a href=\"/?from=0&amp;limit=100\(view.replacing("&", with: "&amp;"))\">Show the first page</a>"
                #expect(page.contains(text) && page.contains(link), "\(view)")
                #expect(!page.contains("The queue is empty.") && !page.contains("No session has ended yet."), "\(view)")
            }
        }
    }

    /// With a filter, the index of the previous page is unknown.
    @Test func `a later page of matches links to the first page, and keeps the filter`() async throws {
        try await WebFixture.with { fixture in
            let (browser, _) = try await fixture.browser()
            let ids = try await fixture.add(12) { $0 % 3 == 0 ? "match" : "other" }
            let first = try await browser.get("/?name=match&state=held,failed&limit=2").body
            let link = try #require(first.firstMatch(of: #/<a href="(?<target>[^"]*)">Next</a>/#), "\(first)")
            let target = String(link.output.target).replacing("&amp;", with: "&")
            #expect(target == "/?from=4&limit=2&state=failed%2Cheld&name=match")
            let second = try await browser.get(target).body
            #expect(ids.indices.filter { second.contains("data-id=\"\(ids[$0])\"") } == [6, 9])
            #expect(second.contains("<a href=\"/?from=0&amp;limit=2&amp;state=failed%2Cheld&amp;name=match\">First page</a>"))
            #expect(!second.contains(">Previous</a>"))
        }
    }

    @Test func `the page is one document with a short script and a style sheet, and needs no other server`() async throws {
        try await WebFixture.with { fixture in
            let (browser, _) = try await fixture.browser()
            let page = try await browser.get("/").body
            // The addresses of the files that the page loads, without those of forms and links.
            let loaded = page.matches(of: #/<(?:link|script|img)[^>]* (?:href|src)="(?<address>[^"]*)"/#).map { String($0.output.address) }
            #expect(Set(loaded) == ["/icon.svg", "/page.css", "/page.js"])
            for path in loaded {
                let reply = try await browser.get(path)
                #expect(reply.status == 200)
                let text = reply.body.replacing("http://www.w3.org/2000/svg", with: "")
                #expect(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "\(path)")
            }
            #expect(try await browser.get("/page.js").body.split(separator: "\n", omittingEmptySubsequences: false).count <= 500)
        }
    }

    @Test func `a session that waits for another session shows the name of that session`() async throws {
        try await WebFixture.with { fixture in
            let first = try await fixture.add(1) { _ in "the first" }[0]
            let second = try await fixture.add(1) { _ in "the second" }[0]
            try await fixture.queue.update(second, SessionUpdate(dependency: .set(.after(first))))
            try await fixture.queue.release(second)
            try await fixture.queue.start()
            let (browser, _) = try await fixture.browser()
            // The other session is not on these pages.
            for path in ["/?view=active&name=second", "/?view=active&name=second&session=\(second)"] {
                let page = try await browser.get(path).body
                #expect(page.contains("waits for session &quot;the first&quot;, which is held"), "\(page)")
            }
        }
    }

    @Test func `a waiting session shows why it waits`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            try await fixture.queue.release(id)
            #expect(try await fixture.browser().client.get("/").body.contains("The queue is not running."))
        }
    }

    @Test func `the log has events from before the start of the server, and the names of all sessions`() async throws {
        try await WebFixture.with { fixture in
            let ids = try await fixture.add(3) { "session \($0)" }
            try await fixture.queue.cancel(ids[2])
            await fixture.server.stop()
            var options = WebServerOptions()
            options.port = 0
            let server = WebServer(RemoteTransferQueue(folder: fixture.store, timeout: .seconds(60)), options: options)
            let port = try #require(URLComponents(string: try await server.start())?.port)
            let client = WebClient(port: UInt16(port), token: try fixture.token())
            // The page lists only the first session.
            var log = ""
            while !log.contains("session 2") {
                log = try await client.get("/?limit=1").body.components(separatedBy: "id=\"log\"").last ?? ""
            }
            #expect(log.contains("cancelled") && !log.contains(ids[2].description.prefix(8)))
            // The metrics count only events after the start of the server.
            let metrics = try await client.get("/metrics").body
            #expect(!metrics.contains("transferq_events_total{event=\"cancelled\"}"))
            await server.stop()
        }
    }

    @Test func `the page reports that a filter examined only part of the queue`() async throws {
        try await WebFixture.with {
            $0.limits.scannedSessions = 10
        } _: { fixture in
            let ids = try await fixture.add(25)
            try await fixture.queue.cancel(ids[24])
            let (browser, _) = try await fixture.browser()
            var (path, pages) = ("/?view=history&limit=5", 0)
            while true {
                let page = try await browser.get(path).body
                pages += 1
                #expect(!page.contains("No session has ended yet."))
                if page.contains("data-id=\"\(ids[24])\"") { break }
                #expect(page.contains("No session from #\((pages - 1) * 10) to #\(pages * 10 - 1) matches."), "\(page)")
                let link = try #require(page.firstMatch(of: #/<a href="(?<target>[^"]*)">Next</a>/#), "\(page)")
                path = String(link.output.target).replacing("&amp;", with: "&")
            }
            #expect(pages == 3)
            // The script requests a longer list than the page, and gets the matching page links.
            let parts = try await browser.get("/parts?view=history&limit=500").object
            #expect((parts["pager"] as? String)?.contains("from=10&amp;limit=500") == true, "\(parts["pager"] ?? "")")
        }
    }
}
