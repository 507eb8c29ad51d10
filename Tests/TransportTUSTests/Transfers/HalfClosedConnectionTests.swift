import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that are closed in one direction within the head of a request. HAProxy, and servers based on SwiftNIO or Node, consider the
/// request malformed, respond with 400, and close the connection.
@Suite struct HalfClosedConnectionTests {
    private static let malformed = [ServerStep.answer(400, ["Connection": "keep-alive"])]

    /// - Parameter count: The number of consecutive requests that receive the status 400.
    private func upload(_ method: String, count: Int = 1) throws -> TestUpload {
        let rest = Locked(count)
        let isMalformed = { @Sendable (other: String) in
            rest.withLock { rest in
                guard method == other, rest > 0 else { return false }
                rest -= 1
                return true
            }
        }
        let features: ServerStep = .tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload,termination"])
        return try TestUpload(size: 10, options: isMalformed("OPTIONS") ? Self.malformed : [features]) { request, _ in
            if isMalformed(request.method) { return Self.malformed }
            return switch request.method {
            case "HEAD": [.offset(0, of: 10)]
            case "POST" where request.contentLength > 0: [.tus(201, ["Location": "/files/1", "Upload-Offset": "10"])]
            case "POST": [.created]
            default: [.tus(204, ["Upload-Offset": "10"])]
            }
        }
    }

    /// Checks that the second request uses a new connection, not the connection of the first response.
    private func checkConnections(of requests: [ReceivedRequest]) {
        #expect(requests.count == 2 && requests.first?.connection != requests.last?.connection)
    }

    @Test func repeatsOPTIONSAndRemembersResponse() async throws {
        let upload = try upload("OPTIONS")
        for _ in 0..<2 { _ = try await upload.run() }
        checkConnections(of: upload.server.requests.filter { $0.method == "OPTIONS" })
        #expect(upload.methods == ["POST", "POST"], "the server offers creation-with-upload")
        await upload.end()
    }

    @Test func assumesCoreAndCreationAfterSecondStatus400() async throws {
        let upload = try upload("OPTIONS", count: 2)
        for _ in 0..<2 { _ = try await upload.run() }
        #expect(upload.featureRequests == 2)
        #expect(upload.methods == ["POST", "PATCH", "POST", "PATCH"])
        await upload.end()
    }

    @Test func repeatsCreation() async throws {
        let upload = try TestUpload(size: 10, answers: [Self.malformed, [.created], [.accepted(10)]])
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        checkConnections(of: Array(upload.requests.prefix(2)))
        await upload.end()
    }

    @Test func repeatsCreationWithoutContent() async throws {
        let upload = try upload("POST", count: 2)
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "POST", "PATCH"])
        await upload.end()
    }

    @Test func repeatsHEAD() async throws {
        let upload = try upload("HEAD")
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.methods == ["HEAD", "HEAD", "PATCH"])
        checkConnections(of: Array(upload.requests.prefix(2)))
        await upload.end()
    }

    @Test func repeatsDELETE() async throws {
        let upload = try upload("DELETE")
        try await upload.transport.discard(try upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        checkConnections(of: upload.requests)
        await upload.end()
    }

    @Test func repeatsDownload() async throws {
        let download = try TestDownload(answers: [Self.malformed, [.answer(200, body: "content")]])
        _ = try await download.run()
        #expect(download.isInPlace && download.content == "content")
        checkConnections(of: download.server.requests)
        await download.end()
    }

    /// A network path may break several connections in a row, so a second status 400 is not final.
    @Test(arguments: ["POST", "HEAD", "DELETE"]) func retriesLaterAfterSecondStatus400(method: String) async throws {
        let upload = try TestUpload(size: 10, answers: [Self.malformed, Self.malformed])
        let failure =
            switch method {
            case "POST": await upload.failure()
            case "HEAD": await upload.failure(from: try upload.checkpoint())
            default:
                await #expect(throws: TransferError.self) {
                    try await upload.transport.discard(try upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
                }
            }
        #expect(failure?.failureClass == .transient && failure?.code == .rejected)
        #expect(upload.methods == [method, method])
        await upload.end()
    }

    /// If a tus server responds with 400, it has read the whole request, so the status is final.
    @Test func status400FromTUSServerIsFinal() async throws {
        let upload = try TestUpload(size: 10, answers: [[.tus(400)]])
        #expect(await upload.failure()?.failureClass == .permanent)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }
}
