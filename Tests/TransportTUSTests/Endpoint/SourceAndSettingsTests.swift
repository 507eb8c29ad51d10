import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

@Suite struct SourceTests {
    @Test func detectsChangeBeforeOpening() async throws {
        let upload = try TestUpload(size: 10, answers: [])
        let source = try upload.file.source
        try upload.file.write([1, 2, 3])
        let error = await upload.failure(source: source)
        #expect(error?.failureClass == .sourceChanged)
        #expect(error?.message.contains("its size was 10 bytes and is now 3") == true)
        #expect(upload.requests.isEmpty)
        await upload.end()
    }

    /// If the app has set the upload's URL, the upload belongs to the app, so the client does not remove the upload.
    @Test(arguments: [false, true]) func detectsChangeDuringUpload(isGiven: Bool) async throws {
        let file = Locked<TemporaryFile?>(nil)
        var upload = try TestUpload(size: 10) { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            case "PATCH": return [.read(nil), .call { try? file.withLock { $0 }?.write([UInt8](repeating: 1, count: 11)) }, .accepted(10)]
            default: return [.tus(204)]
            }
        }
        if isGiven { upload.options.uploadURL = upload.server.url("/elsewhere/7") }
        file.withLock { $0 = upload.file }
        #expect(await upload.failure()?.failureClass == .sourceChanged)
        #expect(upload.methods.contains("DELETE") != isGiven)
        await upload.end()
    }

    @Test func reportsMissingFile() async throws {
        let upload = try TestUpload(size: 10, answers: [])
        let identity = try upload.file.source.identity
        let error = await upload.failure(source: UploadSource(path: "/nonexistent/file", identity: identity))
        #expect(error?.failureClass == .sourceLost)
        #expect(error?.code == .noSuchFile)
        await upload.end()
    }
}

@Suite struct MetadataTests {
    private func values(_ header: String?) -> [String: String] {
        var values: [String: String] = [:]
        for pair in (header ?? "").split(separator: ",") {
            let parts = pair.split(separator: " ")
            values[String(parts[0])] =
                parts.count > 1 ? Data(base64Encoded: String(parts[1])).map { String(decoding: $0, as: UTF8.self) } : ""
        }
        return values
    }

    @Test func sendsMetadata() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.remotePath = "folder/näme,\n .bin"
        upload.options.metadata = ["project": "Ünicode, with\nbreaks", "empty": ""]
        _ = try await upload.run()
        #expect(
            values(upload.requests.first?.headers["upload-metadata"]) == [
                "filename": "näme,\n .bin", "relativePath": "folder/näme,\n .bin", "filetype": "application/octet-stream",
                "transferid": "t-1", "project": "Ünicode, with\nbreaks", "empty": "",
            ])
        await upload.end()
    }

    @Test(arguments: ["", "a b", "a,b", "ä", "a\r\nX: 1", "a\u{7F}", "transferid"]) func rejectsInvalidKeys(key: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.options.metadata = [key: "value"]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidMetadata)
        #expect(upload.requests.isEmpty)
        let refused = #expect(throws: TransferError.self) { try TUSTransport.validate(upload.options, for: .upload) }
        #expect(refused == error)
        try TUSTransport.validate(upload.options, for: .download)
        await upload.end()
    }
}

@Suite struct SettingsTests {
    @Test func sendsHeadersWithEachRequest() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.endpoint.settings = ["header.X-Tenant": "blue"]
        _ = try await upload.run()
        #expect(upload.requests.map { $0.headers["x-tenant"] } == ["blue", "blue"])
        await upload.end()
    }

    @Test(
        arguments: [
            "unknown", "header.Authorization", "header.Upload-Offset", "header.tus-resumable", "header.Host", "header.Content-Length",
            "header.",
            "header.a b",
        ])
    func rejectsInvalidSettings(key: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.endpoint.settings = [key: "value"]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidEndpoint)
        #expect(upload.requests.isEmpty)
        await upload.end()
    }

    @Test func sendsUserAgentOfSession() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.options.headers = ["User-Agent": "Studio/1"]
        _ = try await upload.run()
        #expect(upload.requests.map { $0.headers["user-agent"] } == ["Studio/1", "Studio/1"])
        await upload.end()
    }

    @Test(arguments: ["a\r\nX: 1", "a\nb"]) func rejectsHeaderValuesWithLineBreaks(value: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.endpoint.settings = ["header.X-A": value]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(upload.requests.isEmpty)
        let refused = #expect(throws: TransferError.self) { try TUSTransport.validate(upload.endpoint) }
        #expect(refused == error)
        await upload.end()
    }

    @Test(
        arguments: [
            ("Upload-Offset", "1", "Upload-Offset is reserved by the tus transport; remove the header"),
            ("tus-resumable", "1", "tus-resumable is reserved by the tus transport; remove the header"),
            ("Host", "a", "Host is reserved by the tus transport; remove the header"),
            ("Authorization", "secret", "Authorization is a secret; add it as a credential of the endpoint, not in a session"),
            ("", "a", "is not a header name"), ("a b", "a", "is not a header name"),
            ("é", "a", "is not a header name"), ("a:", "a", "is not a header name"),
            ("X-A", "secret\r\nX: 1", "The value of the header X-A contains a line break"),
            ("X-A", "secret\0", "The value of the header X-A"),
        ])
    func rejectsInvalidSessionHeaders(name: String, value: String, words: String) async throws {
        for direction in [TransferDirection.upload, .download] {
            let refused = #expect(throws: TransferError.self) {
                try TUSTransport.validate(AttemptOptions(headers: [name: value]), for: direction)
            }
            #expect(refused?.failureClass == .permanent)
            #expect(refused?.message.contains(words) == true, "\(String(describing: refused))")
            #expect(refused?.message.contains("setting") == false && refused?.message.contains("secret\r") == false)
        }
        var upload = try TestUpload(size: 1, answers: [])
        upload.options.headers = [name: value]
        #expect(await upload.failure()?.message.contains(words) == true)
        #expect(upload.server.connectionCount == 0)
        await upload.end()
    }
}
