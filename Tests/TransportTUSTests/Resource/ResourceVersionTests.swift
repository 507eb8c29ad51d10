import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Unfinished uploads whose server now supports another version of the IETF protocol *Resumable Uploads for HTTP*.
@Suite struct ResourceVersionTests {
    private static let size = 10

    /// Returns the steps of a server that supports one version, and has stored 4 bytes of the upload.
    ///
    /// - Parameter namesVersion: Whether rejections name the version.
    private static func steps(_ request: ReceivedRequest, version: String, namesVersion: Bool) -> [ServerStep] {
        let wanted = version == "final" ? nil : version
        guard request.headers["upload-draft-interop-version"] == wanted else {
            return [.answer(namesVersion ? 400 : 412, namesVersion ? ["Upload-Draft-Interop-Version": version] : [:])]
        }
        return switch request.method {
        case "HEAD": [.raw("HTTP/1.1 204 No Content\r\n\(ResourceServer.completeness(false, version))Upload-Offset: 4\r\n\r\n")]
        case "DELETE": [.answer(204)]
        default: [.read(nil), .raw("HTTP/1.1 200 OK\r\n\(ResourceServer.completeness(true, version))Content-Length: 0\r\n\r\n")]
        }
    }

    private func checkpoint(_ version: String, _ upload: TestUpload, mayBeComplete: Bool = false) throws -> Checkpoint {
        let complete = mayBeComplete ? ",\"mayBeComplete\":true" : ""
        let text = "{\"url\":\"\(upload.server.url("/up/1"))\",\"dialect\":\"ietf-\(version)\",\"confirmed\":4\(complete)}"
        return Checkpoint(data: Data(text.utf8), confirmed: 4)
    }

    private func summary(_ upload: TestUpload) -> [String] {
        upload.requests.map { "\($0.method) \($0.headers["upload-draft-interop-version"] ?? "-")" }
    }

    /// The server's new software kept the uploads. If the server names its version, the client tries this version next. Otherwise, the
    /// client tries one version after the other.
    @Test(
        arguments: [
            ("6", "8", true, ["8"]), ("3", "9", true, ["9"]), ("10", "6", true, ["6"]), ("final", "10", true, ["10"]),
            ("6", "8", false, ["10", "9", "8"]), ("10", "3", false, ["9", "8", "6", "5", "3"]),
            ("8", "final", false, ["10", "9", "6", "5", "3", "-"]),
        ] as [(String, String, Bool, [String])])
    func resumesInVersionOfServer(stored: String, current: String, namesVersion: Bool, tried: [String]) async throws {
        let upload = try TestUpload.resource(size: Self.size) { request, _ in
            Self.steps(request, version: current, namesVersion: namesVersion)
        }
        #expect(try await upload.run(from: try checkpoint(stored, upload)).bytes == 10)
        let first = stored == "final" ? "-" : stored
        let last = try #require(tried.last)
        #expect(summary(upload) == ["HEAD \(first)"] + tried.map { "HEAD \($0)" } + ["PATCH \(last)"])
        #expect(upload.requests.last?.headers[current == "3" ? "upload-incomplete" : "upload-complete"] == (current == "3" ? "?0" : "?1"))
        #expect(upload.requests.last?.body == Array(TemporaryFile.content(size: Self.size).dropFirst(4)))
        // A later attempt starts with this version, and so do new uploads.
        let saved = String(decoding: try #require(upload.recorder.checkpoints.last).data, as: UTF8.self)
        #expect(saved.contains("\"ietf-\(current)\""), "\(saved)")
        _ = try await upload.run()
        #expect(summary(upload).last == "POST \(last)" && upload.featureRequests == 0)
        await upload.end()
    }

    /// The server's software is replaced between `HEAD` and `PATCH`.
    @Test(arguments: [true, false]) func resumesIfVersionChangesDuringAttempt(namesVersion: Bool) async throws {
        let upload = try TestUpload.resource(size: Self.size) { request, number in
            Self.steps(request, version: number == 0 ? "6" : "8", namesVersion: namesVersion)
        }
        #expect(try await upload.run(from: try checkpoint("6", upload)).bytes == 10)
        let retried = namesVersion ? ["HEAD 8"] : ["HEAD 6", "HEAD 10", "HEAD 9", "HEAD 8"]
        #expect(summary(upload) == ["HEAD 6", "PATCH 6"] + retried + ["PATCH 8"])
        await upload.end()
    }

    @Test(arguments: [true, false]) func removesUploadInVersionOfServer(namesVersion: Bool) async throws {
        let upload = try TestUpload.resource(size: Self.size) { request, _ in
            Self.steps(request, version: "9", namesVersion: namesVersion)
        }
        try await upload.transport.discard(try checkpoint("10", upload), at: upload.endpoint, credentials: upload.credentials)
        #expect(summary(upload) == ["DELETE 10", "DELETE 9"])
        await upload.end()
    }

    /// The upload is gone. The server's earlier software may have completed the upload.
    @Test(arguments: [true, false]) func reportsMissingUpload(mayBeComplete: Bool) async throws {
        let upload = try TestUpload.resource(size: Self.size) { request, _ in
            request.headers["upload-draft-interop-version"] == "8" ? [.answer(404)] : [.answer(412)]
        }
        let error = await upload.failure(from: try checkpoint("9", upload, mayBeComplete: mayBeComplete))
        #expect(mayBeComplete ? error?.code == .outcomeUnknown : error?.failureClass == .resumeLost, "\(String(describing: error))")
        #expect(summary(upload) == ["HEAD 9", "HEAD 10", "HEAD 8"])
        await upload.end()
    }

    @Test func namesVersionsOfBothSides() async throws {
        let upload = try TestUpload.resource(size: Self.size) { _, _ in
            [.answer(412, ["Upload-Draft-Interop-Version": "2", "Tus-Version": "1.0.0"])]
        }
        let error = await upload.failure(from: try checkpoint("6", upload))
        #expect(error?.failureClass == .unsupported && error?.code == .unsupportedVersion)
        #expect(error?.message.contains("it supports draft version 2 of Resumable Uploads for HTTP and tus 1.0.0") == true)
        #expect(summary(upload) == ["6", "10", "9", "8", "5", "3", "-"].map { "HEAD \($0)" })
        await upload.end()
    }

    @Test func endsIfVersionKeepsChanging() async throws {
        let upload = try TestUpload.resource(size: Self.size) { request, _ in
            let version = request.headers["upload-draft-interop-version"] ?? ""
            return request.method == "HEAD"
                ? [.answer(204, ["Upload-Offset": "4", "Upload-Complete": "?0"])]
                : [.answer(400, ["Upload-Draft-Interop-Version": version == "8" ? "9" : "8"])]
        }
        #expect(await upload.failure(from: try checkpoint("8", upload)) != nil)
        #expect(upload.requests.count { $0.method == "PATCH" } <= 4)
        await upload.end()
    }
}
