import Foundation
import SystemPackage
import TUSLoopback
import Testing

@Suite struct CutTests {
    @Test(arguments: [1, 100, 65_536, 3_000_000])
    func `keeps every byte of an abandoned PATCH`(count: Int) async throws {
        try await withServer { server, url in
            let content = bytes(4_000_000)
            let path = try RawConnection(to: url).createUpload(length: content.count, metadata: "filename YQ==")
            let first = try RawConnection(to: url)
            try first.startPatch(path, at: 0, announcing: content.count, content.prefix(count))
            first.close()

            let second = try RawConnection(to: url)
            #expect(try second.offset(path) == count)
            #expect(try second.patch(path, at: count, content.dropFirst(count)).status == 204)
            #expect(try server.contents(named: "a") == [content])
            let requests = try #require(server.statistics.uploads.first).requests
            #expect(requests.map(\.method) == ["POST", "PATCH", "HEAD", "PATCH"])
            #expect(requests.map(\.offset) == [0, 0, Int64(count), Int64(count)])
            #expect(requests.map(\.received) == [0, Int64(count), 0, Int64(content.count - count)])
        }
    }

    @Test(arguments: ["HEAD", "PATCH", "DELETE"])
    func `the next request interrupts a silent PATCH`(method: String) async throws {
        try await withServer { _, url in
            let path = try RawConnection(to: url).createUpload(length: 1000)
            let silent = try RawConnection(to: url)
            try silent.startPatch(path, at: 0, announcing: 1000, bytes(400))
            // The server may not have read all sent bytes yet, but reads them before it interrupts the PATCH.
            let next = try RawConnection(to: url)
            switch method {
            case "HEAD": #expect(try next.offset(path) == 400)
            case "PATCH": #expect(try next.patch(path, at: 400, bytes(600)).status == 204)
            default: #expect(try next.request("DELETE", path).status == 204)
            }
            let response = try silent.readResponse()
            #expect(response.status == 400)
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test func `keeps the offset after a restart`() async throws {
        try await withFolder { folder in
            let content = bytes(100_000)
            let first = TUSLoopbackServer(folder: folder)
            let url = try await first.start()
            let path = try await onThread {
                let connection = try RawConnection(to: url)
                let path = try connection.createUpload(length: content.count, metadata: "filename YQ==")
                let cut = try RawConnection(to: url)
                try cut.startPatch(path, at: 0, announcing: content.count, content.prefix(60_001))
                let response = try connection.request("HEAD", path)
                #expect(response.headers["upload-offset"] == "60001", "\(response)")
                return path
            }
            await first.stop()
            let second = TUSLoopbackServer(folder: folder)
            let newURL = try await second.start()
            try await onThread {
                let connection = try RawConnection(to: newURL)
                #expect(try connection.offset(path) == 60_001)
                #expect(try connection.patch(path, at: 60_001, content.dropFirst(60_001)).status == 204)
                #expect(try second.contents(named: "a") == [content])
            }
            await second.stop()
        }
    }

    @Test(arguments: ["PATCH", "POST"])
    func `stopping the server ends requests without sending a response`(method: String) async throws {
        try await withFolder { folder in
            let server = TUSLoopbackServer(folder: folder)
            let url = try await server.start()
            let (beginnings, begun) = AsyncStream.makeStream(of: Void.self)
            async let isCut = onThread {
                defer { begun.finish() }
                let connection = try RawConnection(to: url)
                let path = method == "POST" ? "/files/" : try connection.createUpload(length: 1000)
                let position = method == "POST" ? ["Upload-Length": "1000"] : ["Upload-Offset": "0"]
                let body = ["Content-Type": offsetStream, "Content-Length": "1000", "Expect": "100-continue"]
                try connection.sendHead(method, path, body.merging(position) { $1 })
                // The server sends 100 (Continue) when it starts to read the body.
                #expect(try connection.readResponse().status == 100)
                try connection.send(bytes(1))
                begun.yield()
                return connection.isAtEnd()
            }
            for await _ in beginnings.prefix(1) {}
            await server.stop()
            #expect(try await isCut)
            await #expect(throws: RawConnection.Failure.self) { try await onThread { _ = try RawConnection(to: url) } }
        }
    }
}
