import Foundation
import TUSLoopback
import Testing

@Suite struct ConcatenationTests {
    private func createPartial(_ connection: RawConnection, length: Int) throws -> String {
        let response = try connection.request("POST", "/files/", ["Upload-Length": "\(length)", "Upload-Concat": "partial"])
        #expect(response.status == 201)
        return try #require(URL(string: response.headers["location"] ?? "")).path
    }

    private func createFinal(
        _ connection: RawConnection, _ partials: [String], _ more: [String: String] = [:]
    ) throws -> RawConnection.Response {
        let headers = ["Upload-Concat": "final;" + partials.joined(separator: " "), "Upload-Metadata": "filename YQ=="]
        return try connection.request("POST", "/files/", headers.merging(more) { $1 })
    }

    private func path(_ response: RawConnection.Response) throws -> String {
        try #require(URL(string: response.headers["location"] ?? "")).path
    }

    @Test(arguments: [false, true]) func `concatenates partial uploads in the given order`(areAbsolute: Bool) async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let content = bytes(300_000)
            let partials = try [100_000, 0, 200_000].map { try createPartial(connection, length: $0) }
            #expect(try connection.patch(partials[2], at: 0, content.dropFirst(100_000)).status == 204)
            #expect(try connection.patch(partials[0], at: 0, content.prefix(100_000)).status == 204)
            #expect(try connection.request("HEAD", partials[0]).headers["upload-concat"] == "partial")
            let named = areAbsolute ? partials.map { "http://known.elsewhere.example\($0)" } : partials
            let response = try createFinal(connection, named)
            #expect(response.status == 201)
            #expect(try server.contents(named: "a") == [content])
            let head = try connection.request("HEAD", path(response))
            #expect(head.headers["upload-offset"] == "300000")
            #expect(head.headers["upload-length"] == "300000")
            #expect(head.headers["upload-concat"] == "final;" + named.joined(separator: " "))
            #expect(try connection.patch(path(response), at: 300_000, Data()).status == 403)
            // The final upload no longer needs its partial uploads.
            for partial in partials { #expect(try connection.request("DELETE", partial).status == 204) }
            #expect(try server.contents(named: "a") == [content])
        }
    }

    @Test func `concatenates partial uploads that complete later`() async throws {
        try await withServer { server, url in
            let connection = try RawConnection(to: url)
            let content = bytes(10)
            let partials = try [4, 6].map { try createPartial(connection, length: $0) }
            let final = try path(try createFinal(connection, partials))
            let head = try connection.request("HEAD", final)
            #expect(head.status == 200)
            #expect(head.headers["upload-offset"] == nil)
            #expect(head.headers["upload-length"] == nil)
            #expect(try connection.patch(partials[1], at: 0, content.dropFirst(4)).status == 204)
            #expect(try connection.request("HEAD", final).headers["upload-offset"] == nil)
            #expect(try connection.patch(partials[0], at: 0, content.prefix(4)).status == 204)
            // The server concatenates the partial uploads without a further request.
            #expect(try server.contents(named: "a") == [content])
            #expect(try connection.offset(final) == 10)
        }
    }

    @Test func `rejects invalid partial uploads`() async throws {
        var options = LoopbackOptions(maximumSize: 5)
        options.extensions.remove(.concatenationUnfinished)
        try await withServer(options) { _, url in
            let connection = try RawConnection(to: url)
            let complete = try createPartial(connection, length: 3)
            #expect(try connection.patch(complete, at: 0, bytes(3)).status == 204)
            let gone = try createPartial(connection, length: 3)
            #expect(try connection.request("DELETE", gone).status == 204)
            #expect(try createFinal(connection, [complete, createPartial(connection, length: 1)]).status == 400)
            #expect(try createFinal(connection, [complete, connection.createUpload(length: 0)]).status == 400)
            #expect(try createFinal(connection, []).status == 400)
            #expect(try createFinal(connection, ["/elsewhere/x"]).status == 400)
            #expect(try createFinal(connection, [complete, "/files/unknown"]).status == 404)
            #expect(try createFinal(connection, [complete, gone]).status == 410)
            #expect(try createFinal(connection, [complete], ["Upload-Length": "3"]).status == 400)
            #expect(try createFinal(connection, [complete, complete]).status == 413)
            #expect(try connection.request("POST", "/files/", ["Upload-Length": "3", "Upload-Concat": "whole"]).status == 400)
            #expect(try createFinal(connection, [complete]).status == 201)
        }
    }

    @Test func `ignores concatenation if the extension is disabled`() async throws {
        var options = LoopbackOptions()
        options.extensions.remove(.concatenation)
        try await withServer(options) { _, url in
            let connection = try RawConnection(to: url)
            #expect(try connection.request("OPTIONS", "/files/", version: nil).headers["tus-extension"]?.contains("concat") == false)
            let partial = try createPartial(connection, length: 0)
            #expect(try connection.request("HEAD", partial).headers["upload-concat"] == nil)
            #expect(try createFinal(connection, [partial]).status == 400)
        }
    }

    @Test func `concatenates partial uploads that complete after a restart`() async throws {
        try await withFolder { folder in
            let first = TUSLoopbackServer(folder: folder)
            let url = try await first.start()
            let (finalPath, partialPath) = try await onThread {
                let connection = try RawConnection(to: url)
                let partial = try createPartial(connection, length: 3)
                let final = try path(try createFinal(connection, [partial, partial]))
                try connection.startPatch(partial, at: 0, announcing: 3, bytes(2))
                #expect(try RawConnection(to: url).offset(partial) == 2)
                return (final, partial)
            }
            await first.stop()
            let second = TUSLoopbackServer(folder: folder)
            let newURL = try await second.start()
            try await onThread {
                let connection = try RawConnection(to: newURL)
                #expect(try connection.patch(partialPath, at: 2, bytes(3).dropFirst(2)).status == 204)
                #expect(try second.contents(named: "a") == [bytes(3) + bytes(3)])
                #expect(try connection.offset(finalPath) == 6)
            }
            await second.stop()
        }
    }
}
