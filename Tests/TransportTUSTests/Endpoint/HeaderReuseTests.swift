import CurlEngine
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct HeaderReuseTests {
    /// The script of a server that accepts the token with the given number and all later tokens.
    private static func script(from number: Int) -> ScriptedServer.Script {
        { request, _ in
            let token = request.headers["authorization"]?.split(separator: "-").last.flatMap { Int($0) } ?? -1
            guard token >= number else { return [.tus(401)] }
            return switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            default: [.accepted(10)]
            }
        }
    }

    @Test func reusesHeadersForRetriesOfFile() async throws {
        let tokens = Tokens()
        let transport = TUSTransport(reusingHeaders: .untilRejected, headers: tokens.hook)
        var upload = try TestUpload(size: 10, answers: [[.created], [.tus(500)], [.tus(500)], [.offset(0)], [.accepted(10)]])
        await #expect(throws: TransferError.self) { try await upload.run(by: transport) }
        upload.number = 2
        _ = try await upload.run(from: upload.recorder.checkpoints.last, by: transport)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        #expect(tokens.requests.map(\.method) == ["OPTIONS"])
        #expect(upload.requests.allSatisfy { $0.headers["authorization"] == "Bearer token-0" })
        // The hook is called again for another file. The server's features are known, so the transport sends no second `OPTIONS`.
        let other = try TestUpload(size: 10, answers: [[.created], [.accepted(10)]])
        var second = other
        second.item = 4
        _ = try await second.run(by: transport)
        #expect(tokens.requests.map(\.item) == [3, 4])
        await transport.shutdown()
        await upload.end()
        await other.end()
    }

    @Test func renewsRejectedHeadersOnce() async throws {
        let tokens = Tokens()
        let transport = TUSTransport(reusingHeaders: .untilRejected, headers: tokens.hook)
        let upload = try TestUpload(size: 10, Self.script(from: 1))
        _ = try await upload.run(by: transport)
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        #expect(tokens.requests.map(\.reason) == [.request, .rejected])
        #expect(upload.requests.map { $0.headers["authorization"] } == [0, 1, 1].map { "Bearer token-\($0)" })
        await transport.shutdown()
        await upload.end()
    }

    /// The headers of one file were rejected, so the headers of other files at the same endpoint may be outdated too.
    @Test func renewalAppliesToOtherFiles() async throws {
        let tokens = Tokens()
        let transport = TUSTransport(reusingHeaders: .untilRejected, headers: tokens.hook)
        let upload = try TestUpload(size: 10) { request, number in
            number < 2 ? Self.script(from: 0)(request, number) : Self.script(from: 1)(request, number)
        }
        var other = upload
        other.item = 4
        _ = try await upload.run(by: transport)
        _ = try await other.run(by: transport)
        _ = try await upload.run(by: transport)
        #expect(tokens.renewals == 1)
        #expect(upload.requests.suffix(2).allSatisfy { $0.headers["authorization"] == "Bearer token-1" })
        await transport.shutdown()
        await upload.end()
    }

    /// A trusted origin gets only headers that the hook returned for this origin.
    @Test func callsHookAgainForOtherOrigin() async throws {
        let tokens = Tokens()
        let transport = TUSTransport(reusingHeaders: .untilRejected, headers: tokens.hook)
        let other = try ScriptedServer { _, _ in [.accepted(10)] }
        var upload = try TestUpload(size: 10) { _, _ in [.tus(201, ["Location": other.url("/1")])] }
        upload.endpoint.settings["origins"] = other.url("")
        _ = try await upload.run(by: transport)
        #expect(tokens.requests.map(\.url) == [upload.server.url(), other.url("/1")])
        await transport.shutdown()
        await upload.end()
        other.stop()
    }

    /// The hook's changes apply to the headers of each request; the headers of the first request are not repeated.
    @Test func repeatsOnlyChanges() async throws {
        let transport = TUSTransport(
            reusingHeaders: .untilRejected,
            headers: { _, headers in
                var headers = headers
                headers["X-Project"] = nil
                headers.append("X-Tag", "a")
                headers.append("X-Tag", "b")
                return headers
            })
        var upload = try TestUpload(size: 10, answers: [[.created], [.accepted(10)]])
        upload.options.headers = ["X-Project": "blue"]
        _ = try await upload.run(by: transport)
        #expect(upload.requests.map { $0.headers["x-project"] } == [nil, nil])
        #expect(upload.requests.map { $0.headers["x-tag"]?.contains("b") } == [true, true])
        #expect(upload.requests.map { $0.headers["upload-offset"] } == [nil, "0"])
        await transport.shutdown()
        await upload.end()
    }
}
