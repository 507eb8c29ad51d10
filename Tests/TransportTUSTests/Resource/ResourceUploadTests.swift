import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Uploads with the IETF protocol *Resumable Uploads for HTTP* in all versions.
@Suite struct ResourceUploadTests {
    @Test(arguments: ResourceServer.versions) func sendsFileInOneRequest(version: String) async throws {
        let server = ResourceServer(version: version, "", nil)
        var upload = try TestUpload.resource(size: 3000, version: version) { request, _ in server.steps(request) }
        upload.remotePath = "ordner/ä b.bin"
        // The server of the final protocol does not name a version, so the client sends the content of the first file in a second request.
        if version == "final" { _ = try await upload.run() }
        let before = upload.requests.count
        let receipt = try await upload.run()
        #expect(receipt.bytes == 3000 && receipt.warnings.isEmpty)
        #expect(receipt.remoteURL == upload.server.url("/files/done"), "the URL of the processed file, not of the upload")
        #expect(upload.methods.dropFirst(before) == ["POST"])
        let request = try #require(upload.requests.last)
        #expect(request.headers["upload-draft-interop-version"] == (version == "final" ? nil : version))
        #expect(request.headers["upload-length"] == "3000")
        #expect(request.headers[version == "3" ? "upload-incomplete" : "upload-complete"] == (version == "3" ? "?0" : "?1"))
        #expect(request.headers["content-type"] == "application/octet-stream")
        #expect(request.headers["content-disposition"] == "inline; filename*=UTF-8''%C3%A4%20b.bin")
        #expect(
            request.headers["tus-resumable"] == nil && request.headers["upload-metadata"] == nil && request.headers["repr-digest"] == nil)
        #expect(request.body == TemporaryFile.content(size: 3000))
        #expect(upload.recorder.progress.last.map { [$0.sent, $0.confirmed] } == [3000, 3000])
        await upload.end()
    }

    @Test func sendsEmptyFile() async throws {
        let server = ResourceServer(version: "8", "", nil)
        let upload = try TestUpload.resource(size: 0) { request, _ in server.steps(request) }
        #expect(try await upload.run().bytes == 0)
        #expect(upload.methods == ["POST"] && server.state.withLock { $0.isComplete })
        await upload.end()
    }

    /// With chunks, the creation has no content. Only the last request completes the upload.
    @Test(arguments: ResourceServer.versions) func sendsChunks(version: String) async throws {
        let server = ResourceServer(version: version, "", nil)
        var upload = try TestUpload.resource(size: 100, version: version) { request, _ in server.steps(request) }
        upload.options.chunkSize = 40
        _ = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.contentLength)" } == ["POST 0", "PATCH 40", "PATCH 40", "PATCH 20"])
        let header = version == "3" ? "upload-incomplete" : "upload-complete"
        #expect(
            upload.requests.compactMap { $0.headers[header] } == (version == "3" ? ["?1", "?1", "?1", "?0"] : ["?0", "?0", "?0", "?1"]))
        #expect(upload.requests.dropFirst().allSatisfy { $0.headers["content-type"] == "application/partial-upload" })
        #expect(upload.requests.compactMap { $0.headers["upload-offset"] } == ["0", "40", "80"])
        #expect(upload.requests.flatMap(\.body) == TemporaryFile.content(size: 100))
        await upload.end()
    }

    @Test func separateCreationHasNoContent() async throws {
        let server = ResourceServer(version: "8", "", nil)
        var upload = try TestUpload.resource(size: 100) { request, _ in server.steps(request) }
        upload.options.creation = .separate
        _ = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.contentLength)" } == ["POST 0", "PATCH 100"])
        await upload.end()
    }

    @Test(arguments: [("PUT", "/files/a%20b.bin"), ("PATCH", "/files/"), ("POST", "/files/")])
    func usesMethodOfEndpoint(method: String, path: String) async throws {
        var upload = try TestUpload.resource(size: 10, answers: [[.answer(201, ["Upload-Complete": "?1"])]])
        upload.endpoint.settings["creationMethod"] = method
        upload.remotePath = "a b.bin"
        _ = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["\(method) \(path)"])
        await upload.end()
    }

    @Test func sendsMetadataThatHasHeader() async throws {
        var upload = try TestUpload.resource(size: 10, answers: [[.answer(200, ["Upload-Complete": "?1"])]])
        upload.options.metadata = ["filetype": "image/png", "filename": "it's.png"]
        _ = try await upload.run()
        #expect(upload.requests.first?.headers["content-type"] == "image/png")
        #expect(upload.requests.first?.headers["content-disposition"] == "inline; filename*=UTF-8''it%27s.png")
        upload.options.metadata = ["album": "x"]
        let error = await upload.failure()
        #expect(error?.code == .invalidMetadata && error?.failureClass == .unsupported)
        await upload.end()
    }

    /// Final responses may lack the header for completeness. Up to version 6, they may also contain the opposite header: `Upload-Complete`
    /// instead of `Upload-Incomplete`, or the reverse.
    @Test(
        arguments: [
            ("6", [:]), ("6", ["Upload-Offset": "10"]), ("6", ["Upload-Incomplete": "?0"]), ("5", ["Upload-Incomplete": "?0"]),
            ("3", ["Upload-Complete": "?1"]), ("3", [:]), ("8", [:]), ("9", [:]),
        ] as [(String, [String: String])])
    func acceptsCompletionWithoutDeclaration(version: String, headers: [String: String]) async throws {
        let upload = try TestUpload.resource(
            size: 10, version: version,
            answers: [
                [.raw(ResourceServer.interim(version)), .answer(201, headers.merging(["Location": "/up/1"]) { $1 })]
            ])
        #expect(try await upload.run().bytes == 10)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    /// The upload resource (the URL that receives the content) responds, because the server kept only part of the content.
    @Test(
        arguments: [
            ("8", ["Upload-Complete": "?0", "Upload-Offset": "4", "Location": "/up/1"], false),
            ("8", ["Upload-Complete": "?0", "Location": "/up/1"], true), ("6", ["Upload-Offset": "4", "Location": "/up/1"], false),
        ] as [(String, [String: String], Bool)])
    func continuesAfterPartialCreation(version: String, headers: [String: String], requestsOffset: Bool) async throws {
        let upload = try TestUpload.resource(size: 10, version: version) { request, _ in
            switch request.method {
            case "POST": [.answer(201, headers)]
            case "HEAD": [.answer(204, ["Upload-Complete": "?0", "Upload-Offset": "4"])]
            default: [.answer(200, ["Upload-Complete": "?1"])]
            }
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST"] + (requestsOffset ? ["HEAD"] : []) + ["PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "4")
        await upload.end()
    }

    /// The response comes from the resource that processes the file, so the upload can't resume.
    @Test(arguments: [422, 500, 403, 503]) func reportsRejectionOfWholeFile(status: Int) async throws {
        let upload = try TestUpload.resource(
            size: 10,
            answers: [
                [
                    .raw(ResourceServer.interim("8")),
                    .answer(status, ["Upload-Complete": "?1", "Content-Type": "text/plain"], body: "no cats"),
                ]
            ])
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.code == .rejected)
        #expect(error?.cause?.contains("no cats") == true && error?.message.contains("received the whole file") == true)
        #expect(upload.methods == ["POST"])
        // A retry by the user restarts the upload.
        #expect(String(decoding: upload.recorder.checkpoints.last?.data ?? .init(), as: UTF8.self) == "{}")
        await upload.end()
    }

    @Test(arguments: ["8", "10", "final"]) func reportsRejectionOfWholeFileAfterChunks(version: String) async throws {
        var upload = try TestUpload.resource(size: 10, version: version) { request, number in
            switch number {
            case 0: [.answer(201, ["Location": "/up/1", "Upload-Complete": "?0"])]
            case 1: [.answer(204, ["Upload-Complete": "?0"])]
            default: [.answer(500, ["Upload-Complete": "?1", "Content-Type": "text/plain"], body: "no cats")]
            }
        }
        upload.options.chunkSize = 6
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.code == .rejected)
        #expect(error?.cause?.contains("no cats") == true && error?.message.contains("received the whole file") == true)
        #expect(upload.methods == ["POST", "PATCH", "PATCH"])
        #expect(String(decoding: upload.recorder.checkpoints.last?.data ?? .init(), as: UTF8.self) == "{}")
        await upload.end()
    }

    /// The protocol does not permit parallel requests for one upload, and has no concatenation.
    @Test func sendsNoSegments() async throws {
        let server = ResourceServer(version: "8", "", nil)
        var upload = try TestUpload.resource(size: 3000) { request, _ in server.steps(request) }
        upload.endpoint.settings["parallelThreshold"] = "1"
        upload.options.segmentsPerFile = 4
        _ = try await upload.run()
        #expect(upload.requests.map { "\($0.method) \($0.contentLength)" } == ["POST 3000"])
        await upload.end()
    }

    @Test func rejectsWebPage() async throws {
        let upload = try TestUpload.resource(size: 10, answers: [[.answer(200, ["Content-Type": "text/html"], body: "<p>Log in</p>")]])
        let error = await upload.failure()
        #expect(error?.failureClass == .unreachable && error?.code == .notThisProtocol)
        await upload.end()
    }

    /// A server that ignores the protocol stores the file anyway.
    @Test func fallsBackToPlainUpload() async throws {
        var upload = try TestUpload(size: 10, options: [.answer(404)]) { _, _ in [.answer(201)] }
        upload.endpoint.settings["dialect"] = "ietf"
        #expect(try await upload.run().bytes == 10)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    @Test func removesUploadOfCheckpoint() async throws {
        let server = ResourceServer(version: "8", "POST", .content(4))
        let upload = try TestUpload.resource(size: 10) { request, _ in server.steps(request) }
        #expect(await upload.failure()?.failureClass == .transient)
        let checkpoint = try #require(upload.recorder.checkpoints.last)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["POST", "DELETE"])
        #expect(upload.requests.last?.path == "/up/1")
        #expect(
            upload.requests.last?.headers["upload-draft-interop-version"] == "8" && upload.requests.last?.headers["tus-resumable"] == nil)
        await upload.end()
    }
}
