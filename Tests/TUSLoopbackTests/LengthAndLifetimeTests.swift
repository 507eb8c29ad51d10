import Foundation
import Locking
import SystemPackage
import TUSLoopback
import Testing
import TransferCore

/// Uploads with a deferred length, and uploads that expire.
@Suite struct LengthAndLifetimeTests {
    private func createDeferred(_ connection: RawConnection) throws -> String {
        let response = try connection.request("POST", "/files/", ["Upload-Defer-Length": "1", "Upload-Metadata": "filename YQ=="])
        #expect(response.status == 201)
        return try #require(URL(string: response.headers["location"] ?? "")).path
    }

    private func headers(at offset: Int, length: Int) -> [String: String] {
        ["Upload-Offset": "\(offset)", "Content-Type": offsetStream, "Upload-Length": "\(length)"]
    }

    @Test func `accepts a deferred length with the last content`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try createDeferred(connection)
            #expect(try connection.patch(path, at: 0, bytes(4)).status == 204)
            let head = try connection.request("HEAD", path)
            #expect(head.headers["upload-defer-length"] == "1")
            #expect(head.headers["upload-length"] == nil)
            #expect(head.headers["upload-offset"] == "4")
            #expect(server.statistics.uploads.map(\.isComplete) == [false])
            #expect(try connection.request("PATCH", path, headers(at: 4, length: 3), body: Data()).status == 400)
            #expect(try connection.request("PATCH", path, headers(at: 4, length: 5), body: bytes(2)).status == 413)
            #expect(try connection.request("HEAD", path).headers["upload-defer-length"] == "1", "a rejected request changes nothing")
            #expect(try connection.request("PATCH", path, headers(at: 4, length: 5), body: Data()).status == 204)
            #expect(try connection.request("PATCH", path, headers(at: 4, length: 6), body: Data()).status == 400)
            #expect(try connection.request("PATCH", path, headers(at: 4, length: 5), body: bytes(1)).status == 204)
            #expect(server.statistics.uploads.map(\.isComplete) == [true])
            #expect(try connection.request("HEAD", path).headers["upload-length"] == "5")
            #expect(try server.contents(named: "a") == [bytes(4) + bytes(1)])
        }
    }

    @Test func `accepts a deferred length without content`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let path = try createDeferred(connection)
            #expect(try connection.request("PATCH", path, headers(at: 0, length: 0), body: Data()).status == 204)
            #expect(server.statistics.uploads.map(\.isComplete) == [true])
        }
    }

    @Test func `limits uploads of unknown length`() async throws {
        try await withServer(LoopbackOptions(maximumSize: 5)) { _, url in
            let connection = try RawConnection(to: url)
            let path = try createDeferred(connection)
            #expect(try connection.patch(path, at: 0, bytes(6)).status == 413)
            #expect(try connection.request("PATCH", path, headers(at: 0, length: 6), body: bytes(5)).status == 413)
            #expect(try connection.patch(path, at: 0, bytes(5)).status == 204)
        }
    }

    @Test(arguments: [["Upload-Defer-Length": "2"], ["Upload-Defer-Length": "1", "Upload-Length": "5"]])
    func `rejects ambiguous lengths`(headers: [String: String]) async throws {
        try await withServer { _, url in
            let response = try RawConnection(to: url).request("POST", "/files/", headers)
            #expect(response.status == 400)
        }
    }

    @Test func `requires a length if deferred lengths are disabled`() async throws {
        var options = LoopbackOptions()
        options.extensions.remove(.creationDeferLength)
        try await withServer(options) { _, url in
            let response = try RawConnection(to: url).request("POST", "/files/", ["Upload-Defer-Length": "1"])
            #expect(response.status == 400)
        }
    }

    /// 6 November 1994, 08:49:37, the example date of RFC 9110.
    private static let start = Date(timeIntervalSince1970: 784_111_777)

    @Test func `only incomplete uploads expire`() async throws {
        try await withFolder { folder in
            let time = Locked(Self.start)
            let options = LoopbackOptions(lifetime: .seconds(60))
            let server = TUSLoopbackServer(folder: folder, options: options, now: { time.withLock { $0 } })
            let url = try await server.start()
            try await onThread {
                let connection = try RawConnection(to: url)
                #expect(try connection.request("OPTIONS", "/files/").headers["tus-extension"]?.hasSuffix(",expiration") == true)
                let complete = try connection.createUpload(length: 3, metadata: "filename Yg==")
                #expect(try connection.patch(complete, at: 0, bytes(3)).headers["upload-expires"] == nil)
                let creation = try connection.request("POST", "/files/", ["Upload-Length": "3", "Upload-Metadata": "filename YQ=="])
                #expect(creation.headers["upload-expires"] == "Sun, 06 Nov 1994 08:50:37 GMT")
                #expect(creation.headers["date"] == "Sun, 06 Nov 1994 08:49:37 GMT")
                let path = try #require(URL(string: creation.headers["location"] ?? "")).path
                time.withLock { $0 += 59 }
                let patch = try connection.patch(path, at: 0, bytes(1))
                #expect(patch.headers["upload-expires"] == "Sun, 06 Nov 1994 08:51:36 GMT")
                time.withLock { $0 += 59 }
                #expect(try connection.request("HEAD", path).headers["upload-expires"] == "Sun, 06 Nov 1994 08:51:36 GMT")
                time.withLock { $0 += 1 }
                let file = try #require(server.storedFiles(named: "a").first)
                for method in ["HEAD", "PATCH", "DELETE"] { #expect(try connection.request(method, path).status == 410) }
                #expect(!FileManager.default.fileExists(atPath: file.string))
                #expect(try connection.offset(complete) == 3)
            }
            await server.stop()
        }
    }

    @Test func `keeps the expiry date after a restart`() async throws {
        try await withFolder { folder in
            let time = Locked(Self.start)
            let options = LoopbackOptions(lifetime: .seconds(60))
            let first = TUSLoopbackServer(folder: folder, options: options, now: { time.withLock { $0 } })
            let url = try await first.start()
            let path = try await onThread { try RawConnection(to: url).createUpload(length: 3) }
            await first.stop()
            time.withLock { $0 += 60 }
            let second = TUSLoopbackServer(folder: folder, options: options, now: { time.withLock { $0 } })
            let newURL = try await second.start()
            #expect(try await onThread { try RawConnection(to: newURL).request("HEAD", path).status } == 410)
            await second.stop()
        }
    }
}
