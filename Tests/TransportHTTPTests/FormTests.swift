import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Files that are sent as parts of forms.
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
        #expect(receipt.answer == ServerResponse(status: 200, mediaType: "application/json", text: #"{"id":7}"#))
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

    @Test func truncatesLongResponse() async throws {
        let transfer = try TestTransfer("form", size: 1, answers: [[.answer(200, body: String(repeating: "x", count: 5000))]])
        let answer = try #require(try await transfer.run().answer)
        #expect(answer.text.utf8.count == 4096)
        #expect(answer.isTruncated)
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
        #expect(try await transfer.run().answer?.status == 302)
        await transfer.end()
    }

    @Test func rejectsAddressWithoutHandler() async throws {
        let transfer = try TestTransfer("form", size: 1, answers: [[.answer(404)], [.answer(405)]])
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(await transfer.failure()?.failureClass == .unsupported)
        await transfer.end()
    }
}
