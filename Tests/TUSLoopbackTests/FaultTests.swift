import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct FaultTests {
    @Test(arguments: [0, 1, 70_000, 100_000])
    func `an interrupted upload keeps exactly the given number of bytes`(count: Int) async throws {
        try await withServer { server, url in
            server.inject(.cut(afterBodyBytes: Int64(count)))
            let content = bytes(100_000)
            let path = try RawConnection(to: url).createUpload(length: content.count)
            let cut = try RawConnection(to: url)
            // The server may close the connection before everything is sent.
            try? cut.startPatch(path, at: 0, announcing: content.count, content)
            #expect(cut.isAtEnd())
            let next = try RawConnection(to: url)
            #expect(try next.offset(path) == count)
            #expect(server.statistics.bytesStored == Int64(count))
            // Each injected disconnection applies once.
            #expect(try next.patch(path, at: count, content.dropFirst(count)).status == 204)
        }
    }

    @Test func `an injected disconnection applies to the first body that is long enough`() async throws {
        try await withServer { server, url in
            server.inject(.cut(afterBodyBytes: 500))
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 1000)
            #expect(try connection.patch(path, at: 0, bytes(499)).status == 204)
            try connection.startPatch(path, at: 499, announcing: 500, bytes(500))
            #expect(connection.isAtEnd())
            #expect(try RawConnection(to: url).offset(path) == 999)
        }
    }

    @Test func `a stopped upload accepts no bytes until the server lets it continue`() async throws {
        try await withServer { server, url in
            server.stopContent(at: 500)
            let path = try RawConnection(to: url).createUpload(length: 1000)
            let stopped = try RawConnection(to: url)
            try stopped.startPatch(path, at: 0, announcing: 1000, bytes(1000))
            // Another request interrupts the stopped request.
            #expect(try RawConnection(to: url).offset(path) == 500)
            server.stopContent(at: nil)
            #expect(try RawConnection(to: url).patch(path, at: 500, bytes(500)).status == 204)
            #expect(server.statistics.bytesStored == 1000)
        }
    }

    @Test func `injected responses apply to their method the given number of times`() async throws {
        try await withServer { server, url in
            server.inject(.answer(status: 503, headers: ["Retry-After": "7"], method: "HEAD"), times: 2)
            let connection = try RawConnection(to: url)
            let path = try connection.createUpload(length: 1000)
            for _ in 1...2 {
                let response = try connection.request("HEAD", path)
                #expect(response.status == 503)
                #expect(response.headers["retry-after"] == "7")
            }
            #expect(try connection.request("HEAD", path).status == 200)
            #expect(server.statistics.requests == ["POST": 1, "HEAD": 3])
        }
    }

    @Test func `a rate limit does not change the body`() async throws {
        try await withServer(LoopbackOptions(bytesPerSecond: 1_000_000)) { server, url in
            let headers = ["Upload-Length": "5000", "Content-Type": offsetStream, "Upload-Metadata": "filename YQ=="]
            let response = try RawConnection(to: url).request("POST", "/files/", headers, body: bytes(5000))
            #expect(response.status == 201)
            #expect(try server.contents(named: "a") == [bytes(5000)])
        }
    }

    @Test func `serves statistics as JSON without counting the request`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            _ = try connection.createUpload(length: 5, metadata: "filename YQ==")
            let response = try connection.request("GET", "/statistics", version: nil)
            #expect(response.status == 200)
            #expect(try JSONDecoder().decode(LoopbackStatistics.self, from: Data(response.body.utf8)) == server.statistics)
            #expect(server.statistics.requests == ["POST": 1])
            #expect(server.statistics.uploads.map(\.filename) == ["a"])
        }
    }
}
