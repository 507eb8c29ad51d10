import Foundation
import TUSLoopback
import Testing

@Suite struct AbandonedRequestTests {
    @Test(arguments: [0, 1, 5, 60, 150])
    func `ignores a PATCH with an incomplete head`(count: Int) async throws {
        try await withServer { server, url in
            let path = try RawConnection(to: url).createUpload(length: 1000)
            let first = try RawConnection(to: url)
            let head =
                "PATCH \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
                + "Content-Type: \(offsetStream)\r\nContent-Length: 1000\r\n\r\n"
            try first.send(String(head.prefix(count)))
            first.close()
            let second = try RawConnection(to: url)
            #expect(try second.offset(path) == 0)
            #expect(try second.patch(path, at: 0, bytes(1000)).status == 204)
            #expect(server.statistics.requests == ["POST": 1, "HEAD": 1, "PATCH": 1])
        }
    }

    @Test func `an idle connection does not block other connections`() async throws {
        try await withServer { _, url in
            let idle = try RawConnection(to: url)
            let begun = try RawConnection(to: url)
            try begun.send("PATCH /files/")
            let path = try RawConnection(to: url).createUpload(length: 1000)
            #expect(try RawConnection(to: url).offset(path) == 0)
            #expect(try idle.patch(path, at: 0, bytes(1000)).status == 204)
        }
    }

    @Test(arguments: [1, 70_000])
    func `keeps every byte of an abandoned creation request`(count: Int) async throws {
        try await withServer { server, url in
            let content = bytes(100_000)
            let first = try RawConnection(to: url)
            try first.sendHead(
                "POST", "/files/",
                [
                    "Upload-Length": "100000", "Upload-Metadata": "filename YQ==", "Content-Type": offsetStream, "Content-Length": "100000",
                ])
            try first.send(content.prefix(count))
            first.endSending()
            // Either an error response or the end of the connection shows that the server has abandoned the request.
            if !first.isAtEnd() { #expect(try first.readResponse().status == 400) }
            let path = "/files/" + (try #require(server.statistics.uploads.first).id)
            let second = try RawConnection(to: url)
            #expect(try second.offset(path) == count)
            #expect(try second.patch(path, at: count, content.dropFirst(count)).status == 204)
            #expect(try server.contents(named: "a") == [content])
        }
    }

    @Test func `accepts one of many concurrent PATCHes at the same offset`() async throws {
        try await withServer { server, url in
            let content = bytes(200_000)
            let path = try RawConnection(to: url).createUpload(length: content.count, metadata: "filename YQ==")
            let connections = try (0..<8).map { _ in try RawConnection(to: url) }
            for connection in connections {
                try connection.startPatch(path, at: 0, announcing: content.count, content)
            }
            let statuses = try connections.map { try $0.readResponse().status }
            #expect(statuses.filter { $0 == 204 }.count == 1)
            #expect(statuses.allSatisfy { [204, 409].contains($0) })
            #expect(try server.contents(named: "a") == [content])
            #expect(server.statistics.bytesStored == 200_000)
        }
    }

    @Test func `responds to pipelined requests in order`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 6)
            try connection.sendHead("HEAD", path)
            try connection.startPatch(path, at: 0, announcing: 3, bytes(3))
            try connection.sendHead("HEAD", path)
            try connection.startPatch(path, at: 3, announcing: 3, bytes(3))
            #expect(try connection.readResponse(toHead: true).headers["upload-offset"] == "0")
            #expect(try connection.readResponse().status == 204)
            #expect(try connection.readResponse(toHead: true).headers["upload-offset"] == "3")
            #expect(try connection.readResponse().headers["upload-offset"] == "6")
        }
    }
}
