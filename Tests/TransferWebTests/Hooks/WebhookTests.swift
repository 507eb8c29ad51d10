import Crypto
import Foundation
import ProcessFixture
import ScriptedHTTP
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite(.timeLimit(.minutes(5))) struct WebhookTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private func start(_ fixture: WebFixture, _ server: ScriptedServer, secret: String = secret) throws -> StartedProgram {
        let file = fixture.folder.appending("secret")
        try Data("\(secret)\n".utf8).write(to: URL(fileURLWithPath: file.string))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.string)
        return try Commands.start(
            [
                "watch", "--quiet", "--follow", "--since", "0", "--event", "added,didChangeQueue", "--webhook", server.url("/hook"),
                "--secret-file", file.string,
            ], store: fixture.store)
    }

    private func signature(of request: ReceivedRequest, _ key: Data) throws -> String {
        let id = try #require(request.headers["webhook-id"])
        let time = try #require(request.headers["webhook-timestamp"])
        let code = HMAC<SHA256>.authenticationCode(for: Data("\(id).\(time).".utf8) + request.body, using: SymmetricKey(data: key))
        return "v1," + Data(code).base64EncodedString()
    }

    private func event(_ request: ReceivedRequest) throws -> String {
        try #require((JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])?["event"] as? String)
    }

    @Test func `each event is sent with a signature, and is sent again after an error`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(1)
            let (received, continuation) = AsyncStream.makeStream(of: Void.self)
            let server = try ScriptedServer { _, number in
                switch number {
                case 0: [.read(nil), .call { continuation.yield() }, .reset]
                case 1: [.answer(500), .call { continuation.yield() }]
                default: [.answer(204), .call { continuation.yield() }]
                }
            }
            defer { server.stop() }
            let program = try start(fixture, server)
            defer { program.kill() }
            var count = 0
            for await _ in received {
                count += 1
                if count == 4 { break }
            }
            let requests = server.requests
            for request in requests.prefix(4) {
                #expect(request.method == "POST" && request.path == "/hook" && request.headers["content-type"] == "application/json")
                #expect(try request.headers["webhook-signature"] == signature(of: request, Data(Self.secret.utf8)))
            }
            #expect(try requests.prefix(4).map(event) == ["added", "added", "added", "didChangeQueue"])
            // A server recognizes a repeated event by its ID.
            #expect(Set(requests.prefix(3).map { $0.headers["webhook-id"] }).count == 1)
            #expect(requests[2].headers["webhook-id"] != requests[3].headers["webhook-id"])
        }
    }

    @Test func `an event is sent again after its sender was killed`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(1)
            let (received, continuation) = AsyncStream.makeStream(of: Void.self)
            let server = try ScriptedServer { _, number in
                [.read(nil), .call { continuation.yield() }] + (number == 0 ? [.silence] : [.answer(200)])
            }
            defer { server.stop() }
            var requests = received.makeAsyncIterator()
            let secret = "whsec_" + Data(Self.secret.utf8).base64EncodedString()
            let first = try start(fixture, server, secret: secret)
            await requests.next()
            first.kill()
            let second = try start(fixture, server, secret: secret)
            defer { second.kill() }
            await requests.next()
            await requests.next()
            #expect(try server.requests.prefix(3).map(event) == ["added", "added", "didChangeQueue"])
            #expect(server.requests[0].headers["webhook-id"] == server.requests[1].headers["webhook-id"])
            #expect(try server.requests[1].headers["webhook-signature"] == signature(of: server.requests[1], Data(Self.secret.utf8)))
        }
    }

    @Test(arguments: ["short", "whsec_???"]) func `a weak secret is rejected`(_ secret: String) async throws {
        try await WebFixture.with { fixture in
            let server = try ScriptedServer(answers: [])
            defer { server.stop() }
            let program = try start(fixture, server, secret: secret)
            #expect(await Commands.end(of: program) == 2)
            #expect(server.requests.isEmpty)
        }
    }
}
