import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct FormTests {
    @Test func formHasLengthAndEndsWithFile() async throws {
        var transfer = try TestTransfer(
            "form", "/upload?x=1", size: 3, answers: [[.answer(200, ["Content-Type": "application/json"], body: #"{"id":7}"#)]])
        transfer.remotePath = "reels/a\"b\nc.txt"
        transfer.endpoint.settings = ["field.key": "{path}", "field.id": "{transfer}", "field.reel": "none", "fileField": "up\"load"]
        transfer.options.metadata = ["reel": "A\r\n7é"]
        let receipt = try await transfer.run()
        let request = try #require(transfer.server.requests.first)
        #expect(request.method == "POST")
        #expect(request.path == "/upload?x=1")
        let type = try #require(request.headers["content-type"])
        #expect(type.hasPrefix("multipart/form-data; boundary=----TransferKit"))
        let boundary = try #require(type.split(separator: "=").last)
        #expect(boundary.utf8.count <= 70, "RFC 2046, section 5.1.1")
        let body = """
            --\(boundary)\r
            Content-Disposition: form-data; name="id"\r
            \r
            t-1\r
            --\(boundary)\r
            Content-Disposition: form-data; name="key"\r
            \r
            reels/a"b\nc.txt\r
            --\(boundary)\r
            Content-Disposition: form-data; name="reel"\r
            \r
            A\r\n7é\r
            --\(boundary)\r
            Content-Disposition: form-data; name="up%22load"; filename="a%22b%0Ac.txt"\r
            Content-Type: text/plain\r
            \r
            \u{0}\u{1}\u{2}\r
            --\(boundary)--\r

            """
        #expect(String(decoding: request.body, as: UTF8.self) == body)
        #expect(request.headers["content-length"] == "\(body.utf8.count)")
        #expect(request.headers["transfer-encoding"] == nil)
        #expect(receipt.bytes == 3)
        #expect(receipt.remoteURL == nil)
        #expect(receipt.serverResponse == ServerResponse(status: 200, mediaType: "application/json", text: #"{"id":7}"#))
        await transfer.end()
    }

    @Test func rejectsNameThatIsNotUTF8() async throws {
        var transfer = try TestTransfer("form", size: 1, answers: [])
        transfer.remoteBytes = [0x61, 0xFF]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.code == .unsafeName)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test func rejectsLineBreaksInMediaType() async throws {
        var transfer = try TestTransfer("form", size: 1, answers: [])
        transfer.options.headers = ["Content-Type": "text/plain\r\nX-Own: 1"]
        #expect(await transfer.failure()?.failureClass == .permanent)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test func progressCountsOnlyFile() async throws {
        let transfer = try TestTransfer("form", size: 2_000_000, answers: [[.answer(201, ["Location": "/files/7?secret=1"])]])
        let receipt = try await transfer.run()
        #expect(receipt.remoteURL == transfer.server.url("/files/7"))
        let progress = transfer.recorder.progress.map(\.sent)
        #expect(progress == progress.sorted())
        #expect(progress.last == 2_000_000)
        let body = try #require(transfer.server.requests.first).body
        let start = try #require(body.firstRange(of: Array("\r\n\r\n".utf8))).upperBound
        #expect(Array(body[start..<start + 2_000_000]) == TemporaryFile.content(size: 2_000_000))
        await transfer.end()
    }

    /// If a setting and the form have a field of the same name, the form takes precedence.
    @Test func progressCountsAllFilesOfForm() async throws {
        var transfer = try TestTransfer("form", answers: [[.answer(201)]])
        let (first, second) = (try TemporaryFile(size: 1_500_000), try TemporaryFile(size: 700_000))
        let form = UploadForm(parts: [
            .file(.init(field: "a", name: "first.png", source: try first.source)), .field(name: "title", value: "{name}"),
            .file(.init(field: "b", name: "second", mediaType: "text/x-own", source: try second.source, offset: 100, length: 600_000)),
        ])
        transfer.form = form
        transfer.endpoint.settings = ["field.title": "unused", "field.id": "{transfer}", "fileField": "unused"]
        // The text is long, so that its bytes would show in the progress if the transport counted them.
        let text = String(repeating: "7", count: 3_000_000)
        transfer.options.metadata = ["take": text]
        let receipt = try await transfer.run()
        #expect(receipt.bytes == 2_100_000 && form.size == 2_100_000)
        let progress = transfer.recorder.progress
        #expect(progress.map(\.sent) == progress.map(\.sent).sorted() && progress.last?.sent == 2_100_000)
        #expect(progress.filter { $0.sent == 0 }.count > 1)
        #expect(progress.dropLast().allSatisfy { $0.confirmed == 0 } && progress.last?.confirmed == 2_100_000)
        let request = try #require(transfer.server.requests.first)
        let boundary = "--" + (request.headers["content-type"]?.split(separator: "=").last ?? "")
        let head = "\(boundary)\r\nContent-Disposition: form-data; name="
        var body = Array((head + "\"id\"\r\n\r\nt-1\r\n" + head + "\"take\"\r\n\r\n\(text)\r\n").utf8)
        body += Array((head + "\"a\"; filename=\"first.png\"\r\nContent-Type: image/png\r\n\r\n").utf8)
        body += TemporaryFile.content(size: 1_500_000) + Array("\r\n".utf8)
        body += Array((head + "\"title\"\r\n\r\n{name}\r\n").utf8)
        body += Array((head + "\"b\"; filename=\"second\"\r\nContent-Type: text/x-own\r\n\r\n").utf8)
        body += TemporaryFile.content(size: 700_000)[100..<600_100] + Array("\r\n\(boundary)--\r\n".utf8)
        #expect(request.body == body)
        await transfer.end()
    }

    /// A file of the form changes while the form is sent, so this attempt and the next one fail. Afterwards, an endpoint that can't receive
    /// forms rejects the form.
    @Test func detectsChangedFileOfForm() async throws {
        let changes = Locked<@Sendable () -> Void>({})
        var transfer = try TestTransfer(
            "form", answers: [[.read(nil), .call { changes.withLock { $0 }() }, .answer(200)], [.answer(413)]])
        let (first, second) = (try TemporaryFile(size: 10), try TemporaryFile(size: 20))
        transfer.form = UploadForm(parts: try [first, second].map { .file(.init(field: "f", name: "x", source: try $0.source)) })
        let path = second.path.string
        changes.withLock { $0 = { try? Data("changed".utf8).write(to: URL(fileURLWithPath: path)) } }
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .sourceChanged && failure?.message.contains(path) == true)
        let server = transfer.server
        #expect(await transfer.failure()?.failureClass == .sourceChanged && server.connectionCount == 1, "the new content is not sent")
        transfer.endpoint = .http("http+put://127.0.0.1:\(server.port)/")
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(throws: TransferError.self) { try transfer.transport.validateForms(with: transfer.options, at: transfer.endpoint) }
        transfer.options.settings = ["upload": "form"]
        try transfer.transport.validateForms(with: transfer.options, at: transfer.endpoint)
        await transfer.end()
    }

    @Test func truncatesLongResponse() async throws {
        let transfer = try TestTransfer("form", size: 1, answers: [[.answer(200, body: String(repeating: "x", count: 5000))]])
        let response = try #require(try await transfer.run().serverResponse)
        #expect(response.text.utf8.count == 4096)
        #expect(response.isTruncated)
        let error = #expect(throws: TransferError.self) { try response.decoded(as: String.self) }
        #expect(error?.message.contains("4096") == true)
        await transfer.end()
    }

    @Test func acceptsRedirectToPageAsSuccess() async throws {
        var transfer = try TestTransfer(
            "form", size: 1,
            answers: [
                [.answer(303, ["Location": "/thanks"])], [.answer(302, ["Location": "/login"])], [.answer(302, ["Location": "/thanks"])],
            ]
        )
        #expect(try await transfer.run().remoteURL == transfer.server.url("/thanks"))
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.message.contains("acceptedStatuses") == true)
        transfer.endpoint.settings["acceptedStatuses"] = "301, 302"
        #expect(try await transfer.run().serverResponse?.status == 302)
        await transfer.end()
    }

    @Test func rejectsAddressWithoutHandler() async throws {
        let transfer = try TestTransfer("form", size: 1, answers: [[.answer(404)], [.answer(405)]])
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(await transfer.failure()?.failureClass == .unsupported)
        await transfer.end()
    }
}
