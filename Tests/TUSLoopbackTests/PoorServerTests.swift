import Foundation
import TUSLoopback
import Testing

/// What a server without an extension does; see also the tests of the others.
@Suite struct PoorServerTests {
    @Test func `a server may have creation only`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { _, url in
            let answer = try RawConnection(to: url).request("OPTIONS", "/files/", version: nil)
            #expect(answer.headers["tus-extension"] == "creation")
        }
    }

    @Test func `what builds on a missing extension is missing, too`() async throws {
        try await withServer(LoopbackOptions(extensions: [.checksumTrailer, .concatenationUnfinished])) { _, url in
            let answer = try RawConnection(to: url).request("OPTIONS", "/files/", version: nil)
            #expect(answer.headers["tus-extension"] == "creation")
        }
    }

    @Test func `content in a creation is not taken`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { server, url in
            let connection = try RawConnection(to: url)
            let answer = try connection.request(
                "POST", "/files/", ["Upload-Length": "5", "Content-Type": offsetStream], body: Data("hello".utf8))
            #expect(answer.status == 201)
            #expect(answer.headers["upload-offset"] == nil)
            let path = try #require(URL(string: answer.headers["location"] ?? "")).path
            #expect(try connection.offset(path) == 0)
            #expect(server.statistics.bytesDiscarded == 5)
        }
    }

    @Test func `uploads are not deleted`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 5)
            let answer = try connection.request("DELETE", path)
            #expect(answer.status == 405)
            #expect(answer.headers["allow"] == "OPTIONS, HEAD, PATCH, GET")
            #expect(try connection.offset(path) == 0)
        }
    }
}
