import Foundation
import TUSLoopback
import Testing

@Suite struct DownloadTests {
    private func upload(_ content: String, to url: URL) throws -> String {
        let path = try RawConnection(to: url).createUpload(length: content.utf8.count, metadata: "filename YQ==")
        if !content.isEmpty { #expect(try RawConnection(to: url).patch(path, at: 0, Data(content.utf8)).status == 204) }
        return path
    }

    @Test func `sends complete uploads to clients that do not use tus`() async throws {
        try await withServer { server, url in
            let path = try upload("hello world", to: url)
            let response = try RawConnection(to: url).request("GET", path, version: nil)
            #expect(response.status == 200)
            #expect(response.body == "hello world")
            #expect(response.headers["content-length"] == "11")
            #expect(response.headers["accept-ranges"] == "bytes")
            #expect(response.headers["etag"]?.hasPrefix("\"") == true)
            #expect(server.statistics.bytesSent == 11)
            let request = try #require(server.statistics.uploads.first?.requests.last)
            #expect((request.method, request.offset, request.sent, request.status) == ("GET", 0, 11, 200))
            // A HEAD request that names a tus version gets a tus response.
            let head = try RawConnection(to: url).request("HEAD", path)
            #expect(head.headers["upload-offset"] == "11")
            #expect(head.headers["content-length"] == "0")
            #expect(try RawConnection(to: url).request("HEAD", path, version: nil).status == 412)
        }
    }

    private static let ranges: [(String, Int, String?, String?)] = [
        ("bytes=0-4", 206, "hello", "bytes 0-4/11"), ("bytes=6-", 206, "world", "bytes 6-10/11"), ("bytes=-3", 206, "rld", "bytes 8-10/11"),
        ("bytes=6-99", 206, "world", "bytes 6-10/11"), ("bytes=-99", 206, "hello world", "bytes 0-10/11"),
        ("bytes=10-9223372036854775807", 206, "d", "bytes 10-10/11"), ("bytes=11-", 416, nil, "bytes */11"),
        ("bytes=-0", 416, nil, "bytes */11"), ("bytes=4-2", 200, "hello world", nil), ("bytes=0-1,4-5", 200, "hello world", nil),
        ("lines=0-1", 200, "hello world", nil), ("bytes=-", 200, "hello world", nil), ("bytes=a-b", 200, "hello world", nil),
    ]

    @Test(arguments: ranges)
    func `serves valid ranges and ignores malformed ranges`(range: String, status: Int, body: String?, contentRange: String?) async throws {
        try await withServer { _, url in
            let path = try upload("hello world", to: url)
            let response = try RawConnection(to: url).request("GET", path, ["Range": range])
            #expect(response.status == status)
            if let body { #expect(response.body == body) }
            #expect(response.headers["content-range"] == contentRange)
        }
    }

    @Test func `serves a range only for unchanged content`() async throws {
        try await withServer { _, url in
            let path = try upload("hello world", to: url)
            let connection = try RawConnection(to: url)
            let tag = try #require(try connection.request("GET", path).headers["etag"])
            #expect(try connection.request("GET", path, ["Range": "bytes=6-", "If-Range": tag]).body == "world")
            for other in ["\"other\"", "W/\(tag)", "Sun, 06 Nov 1994 08:49:37 GMT"] {
                let response = try connection.request("GET", path, ["Range": "bytes=6-", "If-Range": other])
                #expect(response.status == 200)
                #expect(response.body == "hello world")
            }
        }
    }

    @Test func `sends an empty upload`() async throws {
        try await withServer { _, url in
            let response = try RawConnection(to: url).request("GET", try upload("", to: url))
            #expect(response.status == 200)
            #expect(response.headers["content-length"] == "0")
        }
    }

    @Test func `does not send an incomplete upload`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3)
            #expect(try connection.request("GET", path).status == 404)
            #expect(try connection.request("GET", "/files/unknown").status == 404)
            #expect(try connection.request("GET", "/files/").status == 405)
        }
    }

    @Test func `a download request does not interrupt an incomplete upload`() async throws {
        try await withServer { _, url in
            let patching = try RawConnection(to: url)
            let path = try patching.createUpload(length: 3)
            try patching.startPatch(path, at: 0, announcing: 3, bytes(1))
            #expect(try RawConnection(to: url).request("GET", path).status == 404)
            try patching.send(bytes(3).dropFirst())
            #expect(try patching.readResponse().status == 204)
        }
    }

    @Test func `sends large uploads over one connection`() async throws {
        try await withServer { server, url in
            let content = String(repeating: "0123456789", count: 400_000)
            let path = try upload(content, to: url)
            let connection = try RawConnection(to: url)
            for _ in 1...2 { #expect(try connection.request("GET", path).body == content) }
            #expect(server.statistics.bytesSent == 8_000_000)
        }
    }

    @Test(arguments: [0, 1, 300_000]) func `interrupts a download after the given number of bytes`(count: Int) async throws {
        try await withServer { server, url in
            let content = String(repeating: "0123456789", count: 100_000)
            let path = try upload(content, to: url)
            server.inject(.cutDownload(afterBytes: Int64(count)))
            let cut = try RawConnection(to: url)
            try cut.sendHead("GET", path)
            #expect(try cut.bytesUntilEnd().bodySize == count)
            #expect(server.statistics.bytesSent == Int64(count))
            let rest = try RawConnection(to: url).request("GET", path, ["Range": "bytes=\(count)-"])
            #expect(rest.body.utf8.count == content.utf8.count - count)
        }
    }

    @Test func `downloads can be disabled`() async throws {
        try await withServer(LoopbackOptions(servesDownloads: false)) { _, url in
            let path = try upload("hello", to: url)
            let response = try RawConnection(to: url).request("GET", path)
            #expect(response.status == 405)
            #expect(response.headers["allow"] == "OPTIONS, HEAD, PATCH, DELETE")
        }
    }
}
