import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tests of `transferq web`, which executes the program `transferq-web` in its own process.
@Suite(.timeLimit(.minutes(5))) struct ProgramTests {
    /// Starts the command, and reads the URL that it prints.
    private func start(_ fixture: WebFixture, _ options: String...) async throws -> (program: StartedProgram, client: WebClient) {
        let program = try Commands.start(["web", "--listen", "127.0.0.1:0"] + options, store: fixture.store)
        let line = try await BlockingIO.run { String(decoding: try program.read(), as: UTF8.self) }
        let url = try #require(URLComponents(string: line.trimmingCharacters(in: .whitespacesAndNewlines)), "\(line)")
        let token = try #require(url.queryItems?.first { $0.name == "token" }?.value)
        return (program, WebClient(port: UInt16(try #require(url.port)), token: token))
    }

    @Test func `the program serves the queue of another process, and exits with 0 after SIGTERM`() async throws {
        try await WebFixture.with { fixture in
            let (program, client) = try await start(fixture)
            let id = try await fixture.add(1)[0]
            #expect(try await client.post("/api/v1/sessions/\(id)/release").status == 200)
            #expect(try await fixture.queue.status(of: id).state == .waiting)
            program.send(SIGTERM)
            let end = await BlockingIO.run { program.waitForEnd() }
            #expect(end?.status == 0 && end?.wasKilled == false)
        }
    }

    @Test func `the program checks accounts and the storage folder`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.queue.save(Account("-odd name", endpoints: [Endpoint(transport: "tus", address: "tus+http://127.0.0.1:9/")]))
            let (program, client) = try await start(fixture)
            let checked = try await client.post("/api/v1/accounts/-odd%20name/check")
            let findings = try #require(try checked.object["findings"] as? [[String: Any]], "\(checked.body)")
            #expect(findings.count == 1 && findings[0]["state"] as? String == "wrong", "\(checked.body)")
            #expect((findings[0]["detail"] as? String)?.contains("127.0.0.1:9") == true)
            let all = try await client.post("/api/v1/doctor").object["findings"] as? [[String: Any]] ?? []
            #expect(all.contains { $0["check"] as? String == "store" && $0["state"] as? String == "ok" }, "\(all)")
            #expect(all.contains { $0["check"] as? String == "endpoint -odd name" })
            let unknown = try await client.post("/api/v1/accounts/other/check")
            #expect(unknown.status == 404 && unknown.code == "noSuchAccount")
            #expect(try await client.post("/api/v1/doctor", json: #"{"x":1}"#).status == 400)
            // A server in an app has no program for checks. The read-only token permits no checks.
            #expect(try await fixture.client().post("/api/v1/doctor").code == "noDiagnostics")
            #expect(try await fixture.client("web-read.token").post("/api/v1/doctor").status == 403)
            program.send(SIGTERM)
            await BlockingIO.run { _ = program.waitForEnd() }
        }
    }

    @Test func `with --read-only, the program changes nothing`() async throws {
        try await WebFixture.with { fixture in
            let (program, own) = try await start(fixture, "--read-only")
            defer { program.kill() }
            let id = try await fixture.add(1)[0]
            let client = WebClient(port: own.port, token: try fixture.token())
            #expect(try await client.post("/api/v1/sessions/\(id)/release").code == "readOnly")
        }
    }

    @Test func `a program that hangs or is killed does not affect the queue`() async throws {
        try await WebFixture.with { fixture in
            let (program, client) = try await start(fixture)
            let reader = try await EventReader(client)
            let ids = try await fixture.add(500)
            _ = try await reader.events(upTo: "added")
            program.suspend()
            // Together, these events are larger than the buffers of the socket to the program.
            for _ in 0..<50 {
                try await fixture.queue.apply(.release, to: .sessions(ids))
                try await fixture.queue.apply(.hold, to: .sessions(ids))
            }
            program.kill()
            let (next, nextClient) = try await start(fixture)
            defer { next.kill() }
            #expect(try await nextClient.get("/api/v1/sessions/\(ids[0])").object["state"] as? String == "held")
            reader.disconnect()
        }
    }

    @Test func `the program explains why it can't start`() async throws {
        try await WebFixture.with { fixture in
            let cases: [([String], Int32, String)] = [
                (["--listen", "127.0.0.1:\(fixture.port)"], 3, "Cannot listen on"), (["--listen", "0.0.0.0:0"], 3, "--certificate"),
                (["--listen", "nonsense"], 2, "--listen must be"), (["--certificate", "/no/file", "--key", "/no/key"], 3, "certificate"),
            ]
            for (options, status, text) in cases {
                let errors = fixture.folder.appending("errors")
                let program = try Commands.start(["web"] + options, store: fixture.store, errors: errors)
                let end = await BlockingIO.run { program.waitForEnd() }
                #expect(end?.status == status, "\(options)")
                #expect(try String(contentsOfFile: errors.string, encoding: .utf8).contains(text), "\(options)")
            }
        }
    }
}
