import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct OriginTests {
    @Test func `a host name that is not configured is rejected, so that a foreign name for this machine gives no access`() async throws {
        try await WebFixture.with {
            $0.hostNames = ["queue.example.com"]
        } _: { fixture in
            var client = try fixture.client()
            for host in ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example", "128.0.0.1", "[::2]"] {
                client.host = host
                for path in ["/api/v1/queue", "/", "/page.js", "/login?token=\(try fixture.token())"] {
                    #expect(try await client.get(path).status == 421, "\(host)\(path)")
                }
            }
            for host in ["127.0.0.1", "localhost:9000", "[::1]:8420", "LOCALHOST", "queue.example.com"] {
                client.host = host
                #expect(try await client.get("/api/v1/queue").status == 200, "\(host)")
            }
            for host in ["user@localhost", "localhost:port", "[::1", ""] {
                client.host = host
                #expect(try await client.get("/api/v1/queue").status == 400, "\(host)")
            }
        }
    }

    @Test func `a page of another origin is rejected`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let (browser, form) = try await fixture.browser()
            let own = "http://127.0.0.1:\(fixture.port)"
            for origin in ["http://evil.example", "null", "https://127.0.0.1:\(fixture.port)", "http://127.0.0.1:1", "\(own).evil.example"]
            {
                #expect(try await browser.get("/api/v1/queue", ["Origin": origin]).code == "foreignOrigin", "\(origin)")
                let fields = [("form", form), ("do", "cancel"), ("id", "\(id)")]
                #expect(try await browser.post("/forms", form: fields, ["Origin": origin]).status == 403)
                #expect(try await browser.post("/api/v1/sessions/\(id)/cancel", ["Origin": origin]).status == 403)
            }
            #expect(try await fixture.queue.status(of: id).state == .held)
            #expect(try await browser.post("/api/v1/sessions/\(id)/cancel", ["Origin": own]).status == 200)
        }
    }

    @Test func `a request that a page of another site caused is rejected`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            for site in ["cross-site", "same-site"] {
                for path in ["/api/v1/queue", "/api/v1/events", "/parts", "/"] {
                    #expect(try await browser.get(path, ["Sec-Fetch-Site": site]).status == 403, "\(site) \(path)")
                }
                // A user follows a link to the page. The browser then omits the cookie, because the cookie is SameSite=Strict.
                let link = ["Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"]
                #expect(try await fixture.client(nil).get("/", link).status == 401)
                #expect(try await browser.get("/api/v1/queue", link).status == 403)
                #expect(try await browser.post("/forms", form: [("form", form), ("do", "stop")], link).status == 403)
            }
            #expect(try await browser.get("/api/v1/queue", ["Sec-Fetch-Site": "same-origin"]).status == 200)
        }
    }

    @Test func `a form without the page's token changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let (browser, _) = try await fixture.browser()
            let (_, readForm) = try await fixture.browser("web-read.token")
            for token in [nil, "", "0", try fixture.token(), readForm] {
                let fields = [("do", "cancel"), ("id", "\(id)")] + (token.map { [("form", $0)] } ?? [])
                let reply = try await browser.post("/forms", form: fields)
                #expect(reply.status == 403)
                #expect(reply.code == "foreignForm")
            }
            #expect(try await fixture.queue.status(of: id).state == .held)
        }
    }

    @Test func `a form can't use the HTTP interface, because it can't send JSON`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let (browser, _) = try await fixture.browser()
            for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""] {
                let reply = try await browser.send("POST", "/api/v1/sessions/\(id)/cancel", ["Content-Type": type], body: "{}")
                #expect(reply.status == 415, "\(type)")
            }
            #expect(try await fixture.queue.status(of: id).state == .held)
            #expect(try await browser.post("/api/v1/sessions/\(id)/cancel").status == 200)
        }
    }

    @Test func `no response allows other origins, frames or inline scripts`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let replies = [
                try await client.get("/"), try await client.get("/page.js"), try await client.get("/nothing"),
                try await client.get("/api/v1/queue"),
                try await client.send(
                    "OPTIONS", "/api/v1/queue", ["Origin": "http://127.0.0.1:\(fixture.port)", "Access-Control-Request-Method": "POST"]),
                try await fixture.client(nil).get("/"),
            ]
            for reply in replies {
                #expect(!reply.headers.keys.contains { $0.hasPrefix("access-control") })
                let policy = try #require(reply.headers["content-security-policy"])
                #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
                #expect(reply.headers["x-content-type-options"] == "nosniff")
                #expect(reply.headers["cache-control"] == "no-store")
            }
        }
    }
}
