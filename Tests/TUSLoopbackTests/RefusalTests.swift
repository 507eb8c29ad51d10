import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct RefusalTests {
    @Test(arguments: [nil, "", "-1", "+5", "1e3", "0x10", "99999999999999999999"])
    func `rejects a creation request without a valid length`(length: String?) async throws {
        try await withServer { _, url in
            let headers = length.map { ["Upload-Length": $0] } ?? [:]
            let response = try RawConnection(to: url).request("POST", "/files/", headers)
            #expect(response.status == 400)
        }
    }

    @Test(arguments: ["filename !!", "a YQ==,a YQ==", "a YQ== b", ",", ""])
    func `rejects invalid metadata`(metadata: String) async throws {
        try await withServer { _, url in
            let headers = ["Upload-Length": "1", "Upload-Metadata": metadata]
            let response = try RawConnection(to: url).request("POST", "/files/", headers)
            #expect(response.status == 400)
        }
    }

    @Test func `rejects uploads over the limit`() async throws {
        try await withServer(LoopbackOptions(maximumSize: 10)) { _, url in
            let connection = try RawConnection(to: url)
            #expect(try connection.request("POST", "/files/", ["Upload-Length": "11"]).status == 413)
            #expect(try connection.request("POST", "/files/", ["Upload-Length": "10"]).status == 201)
        }
    }

    @Test func `a running server rejects a second start`() async throws {
        try await withFolder { folder in
            let first = TUSLoopbackServer(folder: folder)
            let port = try #require(try await first.start().port.flatMap(UInt16.init(exactly:)))
            await first.stop()
            let server = TUSLoopbackServer(folder: folder, port: port)
            let url = try await server.start()
            let error = await #expect(throws: LoopbackError.self) { try await server.start() }
            #expect(error?.description == "The server is already running. Stop it first.")
            let path = try await onThread { try RawConnection(to: url).createUpload(length: 1) }
            #expect(try await onThread { try RawConnection(to: url).offset(path) } == 0)
            await server.stop()
            #expect(try await server.start() == url)
            await server.stop()
        }
    }

    @Test func `a rejected PATCH changes nothing`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 10)
            #expect(try connection.patch(path, at: 0, bytes(4)).status == 204)
            let conflict = try connection.patch(path, at: 3, bytes(2))
            #expect(conflict.status == 409)
            #expect(conflict.headers["upload-offset"] == "4")
            #expect(try connection.patch(path, at: 4, bytes(7)).status == 413)
            let type = ["Upload-Offset": "4", "Content-Type": "text/plain"]
            #expect(try connection.request("PATCH", path, type, body: bytes(2)).status == 415)
            #expect(try connection.request("PATCH", path, ["Content-Type": offsetStream], body: bytes(2)).status == 400)
            #expect(try connection.request("PATCH", "/files/unknown", type, body: bytes(2)).status == 404)
            #expect(try connection.offset(path) == 4)
            #expect(server.statistics.bytesStored == 4)
            #expect(server.statistics.bytesDiscarded == 15)
        }
    }

    @Test func `a complete upload accepts no more bytes`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 2)
            #expect(try connection.patch(path, at: 0, bytes(2)).status == 204)
            #expect(try connection.patch(path, at: 2, Data()).status == 204)
            #expect(try connection.patch(path, at: 2, bytes(1)).status == 403)
            #expect(try connection.offset(path) == 2)
        }
    }

    @Test func `stores a chunked body up to the upload's length`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3)
            try connection.sendHead("PATCH", path, ["Upload-Offset": "0", "Content-Type": offsetStream, "Transfer-Encoding": "chunked"])
            try connection.send("5\r\nabcde\r\n0\r\n\r\n")
            #expect(try connection.readResponse().status == 413)
            #expect(try RawConnection(to: url).offset(path) == 3)
        }
    }

    @Test func `sends the response before a long rejected body ends`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 10)
            let response = try connection.patch(path, at: 5, bytes(6_000_000))
            #expect(response.status == 409)
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test(arguments: [
        "hello\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n", "POST /files/ HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ])
    func `responds to invalid requests with 400`(text: String) async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            try connection.send(text)
            #expect(try connection.readResponse().status == 400)
            #expect(connection.isAtEnd())
        }
    }

    @Test func `rejects endless headers`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            try connection.send("GET / HTTP/1.1\r\n")
            // The server may close the connection before everything is sent.
            try? connection.send(String(repeating: "a: \(String(repeating: "b", count: 1000))\r\n", count: 100))
            #expect(try connection.readResponse().status == 400)
        }
    }

    @Test func `reports a port in use`() async throws {
        try await withServer { _, url in
            let port = try #require(url.port)
            #expect(port > 0)
        }
        try await withFolder { folder in
            let first = TUSLoopbackServer(folder: folder)
            let port = try #require(try await first.start().port)
            let second = TUSLoopbackServer(folder: folder, port: UInt16(port))
            let error = await #expect(throws: LoopbackError.self) { try await second.start() }
            #expect(error?.description.contains("127.0.0.1:\(port)") == true)
            await first.stop()
        }
    }
}
