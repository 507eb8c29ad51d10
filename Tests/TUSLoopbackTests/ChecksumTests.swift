import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct ChecksumTests {
    /// The checksums of `hello world` with all supported algorithms.
    private static let checksums = [
        "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=", "md5 XrY7u+Ae7tCTyyK7j1rNww==",
    ]
    private static let content = Data("hello world".utf8)
    private static let metadata = "filename YQ=="

    private func headers(_ checksum: String, at offset: Int = 0) -> [String: String] {
        ["Upload-Offset": "\(offset)", "Content-Type": offsetStream, "Upload-Checksum": checksum]
    }

    @Test(arguments: checksums) func `accepts content with the right checksum`(checksum: String) async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 11, metadata: Self.metadata)
            #expect(try connection.request("PATCH", path, headers(checksum), body: Self.content).status == 204)
            #expect(try server.contents(named: "a") == [Self.content])
        }
    }

    @Test(arguments: checksums) func `discards content with a wrong checksum`(checksum: String) async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 14, metadata: Self.metadata)
            #expect(try connection.patch(path, at: 0, Data("abc".utf8)).status == 204)
            #expect(try connection.request("PATCH", path, headers(checksum, at: 3), body: Data("hello_world".utf8)).status == 460)
            #expect(try connection.offset(path) == 3)
            #expect(try server.contents(named: "a") == [Data("abc".utf8)])
            #expect(server.statistics.bytesStored == 3)
            #expect(server.statistics.bytesDiscarded == 11)
            #expect(try connection.request("PATCH", path, headers(checksum, at: 3), body: Self.content).status == 204)
            #expect(server.statistics.uploads.map(\.isComplete) == [true])
        }
    }

    @Test(arguments: ["crc32 AAAA", "sha1", "sha1 !!", ""]) func `rejects invalid checksums`(checksum: String) async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 11)
            #expect(try connection.request("PATCH", path, headers(checksum), body: Self.content).status == 400)
            #expect(server.statistics.bytesStored == 0)
        }
    }

    @Test func `discards the content of an interrupted request with a checksum`() async throws {
        try await withServer { server, url in
            let path = try RawConnection(to: url).createUpload(length: 11)
            let cut = try RawConnection(to: url)
            try cut.sendHead("PATCH", path, headers(Self.checksums[0]).merging(["Content-Length": "11"]) { $1 })
            try cut.send("hello")
            cut.close()
            #expect(try RawConnection(to: url).offset(path) == 0)
            #expect(server.statistics.bytesStored == 0)
        }
    }

    @Test func `discards unverified content after a crash`() async throws {
        try await withFolder { folder in
            let first = TUSLoopbackServer(folder: folder)
            let url = try await first.start()
            let path = try await onThread { try RawConnection(to: url).createUpload(length: 11) }
            await first.stop()
            // Creates the files that remain if the server is killed during a request with a checksum.
            let id = path.split(separator: "/").last.map(String.init) ?? ""
            let recordFile = URL(filePath: folder.appending("\(id).json").string)
            var object = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: recordFile)) as? [String: Any])
            object["unverifiedFrom"] = 2
            try JSONSerialization.data(withJSONObject: object).write(to: recordFile)
            try Data("hello".utf8).write(to: URL(filePath: folder.appending("\(id).bin").string))
            let second = TUSLoopbackServer(folder: folder)
            let newURL = try await second.start()
            #expect(try await onThread { try RawConnection(to: newURL).offset(path) } == 2)
            await second.stop()
        }
    }

    @Test(arguments: [(checksums[0], 201), (checksums[1], 201), ("sha1 AAAA", 460)])
    func `verifies the checksum of a creation request with content`(checksum: String, status: Int) async throws {
        try await withServer { server, url in
            let response = try RawConnection(to: url).request(
                "POST", "/files/",
                ["Upload-Length": "11", "Content-Type": offsetStream, "Upload-Checksum": checksum, "Upload-Metadata": Self.metadata],
                body: Self.content)
            #expect(response.status == status)
            #expect(try server.contents(named: "a") == (status == 201 ? [Self.content] : []))
        }
    }

    private func sendChunked(_ connection: RawConnection, _ path: String, _ content: String, trailers: String) throws -> Int {
        try connection.sendHead(
            "PATCH", path,
            ["Upload-Offset": "0", "Content-Type": offsetStream, "Transfer-Encoding": "chunked", "Trailer": "Upload-Checksum"])
        try connection.send("\(String(content.utf8.count, radix: 16))\r\n\(content)\r\n0\r\n\(trailers)\r\n")
        return try connection.readResponse().status
    }

    @Test(arguments: checksums) func `accepts the checksum in a trailer`(checksum: String) async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 11, metadata: Self.metadata)
            #expect(try sendChunked(connection, path, "hello_world", trailers: "Upload-Checksum: \(checksum)\r\n") == 460)
            #expect(try sendChunked(connection, path, "hello world", trailers: "") == 400)
            #expect(try connection.offset(path) == 0)
            #expect(try sendChunked(connection, path, "hello world", trailers: "Upload-Checksum: \(checksum)\r\n") == 204)
            #expect(try server.contents(named: "a") == [Self.content])
        }
    }

    @Test func `ignores checksums if the extension is disabled`() async throws {
        var options = LoopbackOptions()
        options.extensions.remove(.checksum)
        try await withServer(options) { server, url in
            let connection = try RawConnection(to: url)
            let response = try connection.request("OPTIONS", "/files/", version: nil)
            #expect(response.headers["tus-checksum-algorithm"] == nil)
            #expect(response.headers["tus-extension"]?.contains("checksum") == false)
            let path = try connection.createUpload(length: 11, metadata: Self.metadata)
            #expect(try sendChunked(connection, path, "hello world", trailers: "Upload-Checksum: sha1 AAAA\r\n") == 204)
            #expect(try server.contents(named: "a") == [Self.content])
        }
    }
}
