import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct ProtocolTests {
    @Test func `OPTIONS lists features even if the request names no version`() async throws {
        try await withServer(LoopbackOptions(maximumSize: 5000)) { _, url in
            let response = try RawConnection(to: url).request("OPTIONS", "/files/", version: nil)
            #expect(response.status == 204)
            #expect(response.headers["tus-version"] == "1.0.0")
            #expect(
                response.headers["tus-extension"]
                    == "creation,creation-with-upload,creation-defer-length,termination,checksum,checksum-trailer,concatenation,concatenation-unfinished"
            )
            #expect(response.headers["tus-checksum-algorithm"] == "sha1,sha256,md5")
            #expect(response.headers["tus-resumable"] == "1.0.0")
            #expect(response.headers["tus-max-size"] == "5000")
        }
    }

    @Test(arguments: [nil, "0.2.2"]) func `rejects requests with a missing or unsupported version`(version: String?) async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3)
            for (method, path) in [("POST", "/files/"), ("HEAD", path), ("PATCH", path), ("DELETE", path)] {
                let response = try connection.request(method, path, version: version)
                #expect(response.status == 412)
                #expect(response.headers["tus-version"] == "1.0.0")
            }
            #expect(try connection.offset(path) == 0)
        }
    }

    @Test func `creates an upload, stores its content and reports its state`() async throws {
        try await withServer { server, url in
            let content = bytes(700_000)
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: content.count, metadata: "filename cmVlbC5tb3Y=,flag")
            let first = try connection.patch(path, at: 0, content.prefix(300_000))
            #expect(first.status == 204)
            #expect(first.headers["upload-offset"] == "300000")
            let head = try connection.request("HEAD", path)
            #expect(head.status == 200)
            #expect(head.headers["upload-offset"] == "300000")
            #expect(head.headers["upload-length"] == "700000")
            #expect(head.headers["upload-metadata"] == "filename cmVlbC5tb3Y=,flag")
            #expect(head.headers["cache-control"] == "no-store")
            #expect(try connection.patch(path, at: 300_000, content.dropFirst(300_000)).status == 204)

            let file = try #require(server.storedFiles(named: "reel.mov").first)
            #expect(try read(file) == content)
            let record = try #require(try JSONSerialization.jsonObject(with: read(file.with(extension: "json"))) as? [String: Any])
            #expect(record["complete"] as? Bool == true)
            #expect(record["metadata"] as? [String: String] == ["filename": "reel.mov", "flag": ""])
        }
    }

    @Test(arguments: [0, 1, 5000]) func `accepts content in the creation request`(count: Int) async throws {
        try await withServer { server, url in
            let content = bytes(count)
            let headers = ["Upload-Length": String(count), "Content-Type": offsetStream, "Upload-Metadata": "filename YQ=="]
            let connection = try RawConnection(to: url)
            let response = try connection.request("POST", "/files/", headers, body: content)
            #expect(response.status == 201)
            #expect(response.headers["upload-offset"] == String(count))
            #expect(try server.contents(named: "a") == [content])
            #expect(server.statistics.uploads.map(\.isComplete) == [true])
        }
    }

    @Test func `sends absolute or relative locations`() async throws {
        for isRelative in [false, true] {
            try await withServer(LoopbackOptions(usesRelativeLocation: isRelative)) { _, url in
                let response = try RawConnection(to: url).request("POST", "/files/", ["Upload-Length": "1"])
                #expect(response.headers["location"]?.hasPrefix(isRelative ? "/files/" : url.absoluteString) == true)
            }
        }
    }

    @Test func `accepts a chunked body`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 9, metadata: "filename YQ==")
            try connection.sendHead("PATCH", path, ["Upload-Offset": "0", "Content-Type": offsetStream, "Transfer-Encoding": "chunked"])
            try connection.send("4;name=value\r\nabcd\r\n5\r\nefghi\r\n0\r\nTrailer: x\r\n\r\n")
            #expect(try connection.readResponse().status == 204)
            #expect(try server.contents(named: "a") == [Data("abcdefghi".utf8)])
            #expect(try connection.offset(path) == 9)
        }
    }

    @Test func `sends 100 Continue`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3)
            let headers = ["Upload-Offset": "0", "Content-Type": offsetStream, "Content-Length": "3", "Expect": "100-continue"]
            try connection.sendHead("PATCH", path, headers)
            #expect(try connection.readResponse().status == 100)
            try connection.send("abc")
            #expect(try connection.readResponse().status == 204)
            // If the server rejects the request instead, the client need not send the body.
            try connection.sendHead("PATCH", path, headers)
            #expect(try connection.readResponse().status == 409)
            #expect(connection.isAtEnd())
        }
    }

    @Test func `terminating removes the upload and its files`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3, metadata: "filename YQ==")
            let file = try #require(server.storedFiles(named: "a").first)
            #expect(try connection.request("DELETE", path).status == 204)
            #expect(try connection.request("HEAD", path).status == 410)
            #expect(try connection.request("DELETE", path).status == 410)
            #expect(!FileManager.default.fileExists(atPath: file.string))
            #expect(!FileManager.default.fileExists(atPath: file.with(extension: "json").string))
        }
    }

    @Test func `accepts a method override`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 3)
            #expect(try connection.request("POST", path, ["X-HTTP-Method-Override": "DELETE"]).status == 204)
        }
    }
}
