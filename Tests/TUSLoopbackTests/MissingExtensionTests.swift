import Foundation
import TUSLoopback
import Testing

/// The behaviour of a server without extensions. The tests of each extension contain more cases.
@Suite struct MissingExtensionTests {
    @Test func `all optional extensions can be disabled`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { _, url in
            let response = try RawConnection(to: url).request("OPTIONS", "/files/", version: nil)
            #expect(response.headers["tus-extension"] == "creation")
        }
    }

    @Test func `disabling an extension also disables the extensions that require it`() async throws {
        try await withServer(LoopbackOptions(extensions: [.checksumTrailer, .concatenationUnfinished])) { _, url in
            let response = try RawConnection(to: url).request("OPTIONS", "/files/", version: nil)
            #expect(response.headers["tus-extension"] == "creation")
        }
    }

    @Test func `ignores content in a creation request`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { server, url in
            let connection = try RawConnection(to: url)
            let response = try connection.request(
                "POST", "/files/", ["Upload-Length": "5", "Content-Type": offsetStream], body: Data("hello".utf8))
            #expect(response.status == 201)
            #expect(response.headers["upload-offset"] == nil)
            let path = try #require(URL(string: response.headers["location"] ?? "")).path
            #expect(try connection.offset(path) == 0)
            #expect(server.statistics.bytesDiscarded == 5)
        }
    }

    @Test func `rejects a DELETE request`() async throws {
        try await withServer(LoopbackOptions(extensions: [])) { _, url in
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 5)
            let response = try connection.request("DELETE", path)
            #expect(response.status == 405)
            #expect(response.headers["allow"] == "OPTIONS, HEAD, PATCH, GET")
            #expect(try connection.offset(path) == 0)
        }
    }
}
