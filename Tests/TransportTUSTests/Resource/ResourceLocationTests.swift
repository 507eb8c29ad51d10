import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The URL of an upload in several responses to one request. All URLs must be the same, except in the response that completes the upload.
@Suite struct ResourceLocationTests {
    private static func created(_ location: String) -> ServerStep {
        .answer(201, ["Location": location, "Upload-Complete": "?0", "Upload-Offset": "0"])
    }

    private func urls(_ upload: TestUpload) -> [String?] {
        struct Saved: Decodable {
            var url: String?
        }
        return upload.recorder.checkpoints.map { (try? JSONDecoder().decode(Saved.self, from: $0.data))?.url }
    }

    /// Relative and absolute URLs of the same upload are equal.
    @Test(arguments: ["3", "8", "final"]) func acceptsRepeatedLocation(version: String) async throws {
        let url = Locked("")
        var upload = try TestUpload.resource(size: 10, version: version) { request, _ in
            guard request.method == "POST" else {
                return [.raw("HTTP/1.1 200 OK\r\n\(ResourceServer.completeness(true, version))Content-Length: 0\r\n\r\n")]
            }
            let line = "Location: \(url.withLock { $0 })\r\n"
            return [
                .raw(ResourceServer.interim(version)), .raw(ResourceServer.interim(version, line)),
                .raw(ResourceServer.interim(version, "Upload-Offset: 0\r\n")),
                .raw("HTTP/1.1 201 Created\r\n\(ResourceServer.completeness(false, version))\(line)Content-Length: 0\r\n\r\n"),
            ]
        }
        url.withLock { $0 = upload.server.url("/up/1") }
        upload.options.creation = .separate
        _ = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "PATCH /up/1"])
        #expect(Set(urls(upload).compactMap(\.self)) == [upload.server.url("/up/1")])
        await upload.end()
    }

    /// The client ends the request, and removes the upload that was announced first. A retry by the user restarts the upload.
    @Test(arguments: ["3", "8", "10"]) func rejectsChangedInterimLocation(version: String) async throws {
        let upload = try TestUpload.resource(size: 32 << 20, version: version) { request, _ in
            request.method == "DELETE"
                ? [.answer(204)]
                : [
                    .raw(ResourceServer.interim(version)), .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(1000),
                    .raw(ResourceServer.interim(version, "Location: /up/2\r\n")), .silence,
                ]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.code == .invalidResponse)
        #expect(error?.message.contains("two uploads for one request") == true, "\(error?.message ?? "")")
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "DELETE /up/1"])
        #expect(urls(upload).last == .some(nil))
        await upload.end()
    }

    @Test(arguments: ["3", "8", "10"]) func rejectsChangedFinalLocation(version: String) async throws {
        var upload = try TestUpload.resource(size: 10, version: version) { request, _ in
            request.method == "DELETE"
                ? [.answer(204)]
                : [
                    .raw(ResourceServer.interim(version)),
                    .raw(
                        "HTTP/1.1 201 Created\r\n\(ResourceServer.completeness(false, version))Location: /up/2\r\nContent-Length: 0\r\n\r\n"
                    ),
                ]
        }
        upload.options.creation = .separate
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.code == .invalidResponse)
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "DELETE /up/1"])
        #expect(urls(upload).last == .some(nil))
        await upload.end()
    }

    @Test func ignoresLocationInResponseToPATCH() async throws {
        var upload = try TestUpload.resource(size: 10) { request, number in
            switch number {
            case 0: [Self.created("/up/1")]
            case 1:
                [.raw(ResourceServer.interim("8", "Location: /up/2\r\n")), .answer(204, ["Upload-Complete": "?0", "Location": "/up/3"])]
            default: [.answer(200, ["Upload-Complete": "?1", "Location": "/files/done"])]
            }
        }
        upload.options.chunkSize = 6
        let receipt = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "PATCH /up/1", "PATCH /up/1"])
        #expect(receipt.remoteURL == upload.server.url("/files/done"))
        await upload.end()
    }

    /// After a redirect, a relative URL belongs to the redirect's target, even in an interim response.
    @Test func resolvesLocationAfterRedirect() async throws {
        let upload = try TestUpload.resource(size: 32 << 20) { request, _ in
            switch (request.method, request.path) {
            case ("POST", "/files/"):
                [.raw("HTTP/1.1 307 Temporary Redirect\r\nLocation: /new/files/\r\nContent-Length: 0\r\n\r\n"), .close]
            case ("POST", _):
                [.raw(ResourceServer.interim("8", "Location: up/1\r\n")), .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(1000), .reset]
            case ("HEAD", _): [.answer(204, ["Upload-Offset": "1000", "Upload-Complete": "?0"])]
            default: [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .answer(200, ["Upload-Complete": "?1"])]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(urls(upload).last == upload.server.url("/new/files/up/1"))
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.dropFirst(2).map { "\($0.method) \($0.path)" } == ["HEAD /new/files/up/1", "PATCH /new/files/up/1"])
        await upload.end()
    }
}
