import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct TokenTests {
    @Test func `a request without a valid token is rejected`() async throws {
        try await WebFixture.with { fixture in
            for token in [nil, "wrong", ""] {
                var client = try fixture.client(nil)
                client.token = token
                for path in ["/api/v1/queue", "/api/v1/sessions", "/api/v1/events", "/parts", "/nothing"] {
                    let reply = try await client.get(path)
                    #expect(reply.status == 401, "\(path)")
                    #expect(reply.code == "unauthorized")
                }
                let page = try await client.get("/")
                #expect(page.status == 401)
                #expect(page.body.contains("Token") && !page.body.contains("id=\"sessions\""))
            }
        }
    }

    @Test func `the printed URL gives a cookie that scripts and other sites can't use, and that does not contain the token`() async throws {
        try await WebFixture.with { fixture in
            let path = try #require(fixture.url.range(of: "/login?token=").map { String(fixture.url[$0.lowerBound...]) })
            let reply = try await fixture.client(nil).get(path)
            let cookie = try #require(reply.headers["set-cookie"])
            #expect(reply.status == 303 && reply.headers["location"] == "/")
            #expect(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict") && cookie.contains("; Path=/"))
            #expect(try !cookie.contains(fixture.token()))
            let (browser, form) = try await fixture.browser()
            #expect(try await browser.get("/").body.contains("data-access=\"write\""))
            #expect(!form.isEmpty)
            var changed = browser
            changed.headers["Cookie"]?.removeLast()
            #expect(try await changed.get("/api/v1/queue").status == 401)
        }
    }

    @Test func `a wrong token gives no cookie`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client(nil)
            for reply in [
                try await client.get("/login?token=wrong"), try await client.post("/login", form: [("token", "wrong")]),
            ] {
                #expect(reply.status == 401)
                #expect(reply.headers["set-cookie"] == nil)
            }
            let reply = try await client.post("/login", form: [("token", " \(fixture.token()) ")])
            #expect(reply.status == 303)
        }
    }

    @Test func `the read-only token changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let client = try fixture.client("web-read.token")
            #expect(try await client.get("/api/v1/sessions/\(id)").status == 200)
            let (browser, form) = try await fixture.browser("web-read.token")
            let page = try await browser.get("/")
            #expect(page.body.contains("data-access=\"read\"") && !page.body.contains("value=\"remove\""))
            let replies = [
                try await client.post("/api/v1/sessions/\(id)/remove"), try await client.post("/api/v1/queue/stop"),
                try await client.send("DELETE", "/api/v1/accounts/a"),
                try await browser.post("/forms", form: [("form", form), ("do", "cancel"), ("id", "\(id)")]),
                try await browser.post("/api/v1/sessions/\(id)/remove"),
            ]
            for reply in replies {
                #expect(reply.status == 403)
                #expect(reply.code == "readOnly")
            }
            #expect(try await fixture.queue.status(of: id).state == .held)
        }
    }

    @Test func `a read-only server rejects changes even with the token that permits changes`() async throws {
        try await WebFixture.with {
            $0.isReadOnly = true
        } _: { fixture in
            let id = try await fixture.add(1)[0]
            let reply = try await fixture.client().post("/api/v1/sessions/\(id)/remove")
            #expect(reply.status == 403)
            #expect(try fixture.url.hasSuffix(fixture.token("web-read.token")))
        }
    }

    @Test func `only the owner of the token files can read them, and the tokens survive a restart`() async throws {
        try await WebFixture.with { fixture in
            let tokens = [try fixture.token(), try fixture.token("web-read.token")]
            #expect(Set(tokens).count == 2 && tokens.allSatisfy { $0.count == 64 })
            for name in ["web.token", "web-read.token"] {
                let attributes = try FileManager.default.attributesOfItem(atPath: fixture.store.appending(name).string)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
            }
            await fixture.server.stop()
            _ = try await fixture.server.start()
            await fixture.server.stop()
            #expect(try [fixture.token(), fixture.token("web-read.token")] == tokens)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: fixture.store.appending("web.token").string)
            let error = await #expect(throws: WebServerError.self) { try await fixture.server.start() }
            #expect(error?.description.contains("chmod 600") == true)
        }
    }

    @Test func `listening for other machines requires a certificate`() async throws {
        try await WebFixture.with { fixture in
            var options = WebServerOptions()
            (options.address, options.port) = ("0.0.0.0", 0)
            let server = WebServer(RemoteTransferQueue(folder: fixture.store), options: options)
            let error = await #expect(throws: WebServerError.self) { try await server.start() }
            #expect(error?.description.contains("--certificate") == true)
        }
    }

    @Test func `signing out removes the cookie`() async throws {
        try await WebFixture.with { fixture in
            let (browser, form) = try await fixture.browser()
            let reply = try await browser.post("/logout", form: [("form", form)])
            #expect(reply.headers["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(try await browser.post("/logout", form: [("form", "wrong")]).status == 403)
        }
    }
}
