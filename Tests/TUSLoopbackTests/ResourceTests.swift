import Crypto
import Foundation
import TUSLoopback
import Testing

/// The server's implementation of the IETF protocol *Resumable Uploads for HTTP*. The tests act like a client such as URLSession.
@Suite struct ResourceTests {
    private static let dialects = LoopbackDialect.allCases.filter { $0 != .tus }

    private func version(_ dialect: LoopbackDialect) -> [String: String] {
        dialect == .final ? [:] : ["Upload-Draft-Interop-Version": dialect.rawValue]
    }

    private func path(_ location: String?) throws -> String { try #require(location.flatMap { URL(string: $0)?.path }) }

    /// The first interim response arrives before the client sends content. Later interim responses report the offset.
    @Test(arguments: dialects) func announcesUploadBeforeContent(dialect: LoopbackDialect) async throws {
        let version = version(dialect)
        try await withServer(LoopbackOptions(maximumSize: 1000, lifetime: .seconds(60), dialect: dialect, progressInterval: 40)) {
            server, url in
            let connection = try RawConnection(to: url)
            try connection.sendHead(
                "POST", "/files/",
                version.merging(["Upload-Complete": "?1", "Content-Length": "100", "Content-Disposition": "inline; filename*=UTF-8''a%20b"])
                { $1 },
                version: nil)
            let announced = try connection.readResponse()
            #expect(announced.status == 104)
            #expect(announced.headers["upload-draft-interop-version"] == version["Upload-Draft-Interop-Version"])
            let age = dialect == .draft6 ? "expires" : "max-age"
            #expect(announced.headers["upload-limit"]?.hasPrefix("max-size=1000, \(age)=") == true)
            try connection.send(bytes(50))
            let progress = try connection.readResponse()
            #expect(progress.status == 104 && progress.headers["upload-offset"] == "50" && progress.headers["location"] == nil)
            try connection.send(Data(bytes(100).dropFirst(50)))
            var final = try connection.readResponse()
            if final.status == 104 { final = try connection.readResponse() }
            #expect(final.status == 201 && final.headers["upload-complete"] == "?1")
            #expect(try server.contents(named: "a b") == [bytes(100)])
            let state = try connection.request("HEAD", try path(announced.headers["location"]), version, version: nil)
            #expect(state.status == 204 && state.headers["upload-complete"] == "?1" && state.headers["upload-offset"] == "100")
            #expect(state.headers["upload-length"] == "100" && state.headers["cache-control"] == "no-store")
            #expect(state.headers["tus-resumable"] == nil)
            #expect(try connection.request("GET", try path(final.headers["location"]), version: nil).body.utf8.count > 0)
        }
    }

    @Test(arguments: dialects) func resumesAndCancels(dialect: LoopbackDialect) async throws {
        let version = version(dialect)
        try await withServer(LoopbackOptions(dialect: dialect)) { server, url in
            let connection = try RawConnection(to: url)
            let append = { (offset: Int, body: Data, isLast: Bool, path: String) in
                try connection.request(
                    "PATCH", path,
                    version.merging([
                        "Upload-Offset": "\(offset)", "Upload-Complete": isLast ? "?1" : "?0", "Content-Type": "application/partial-upload",
                    ]) { $1 }, body: body, version: nil)
            }
            func create() throws -> String {
                let headers = version.merging(["Upload-Complete": "?0", "Upload-Length": "10"]) { $1 }
                try connection.sendHead("POST", "/files/", headers.merging(["Content-Length": "0"]) { $1 }, version: nil)
                #expect(try connection.readResponse().status == 104)
                let created = try connection.readResponse()
                #expect(created.status == 201 && created.headers["upload-complete"] == "?0")
                return try self.path(created.headers["location"])
            }
            let path = try create()
            let first = try append(0, bytes(4), false, path)
            #expect(first.status == 204 && first.headers["upload-offset"] == "4" && first.headers["upload-complete"] == "?0")
            let conflict = try append(3, bytes(4), false, path)
            #expect(conflict.status == 409)
            let explains = dialect != .draft6 && dialect != .draft8
            #expect(conflict.headers["upload-offset"] == (explains ? "4" : nil))
            #expect(
                conflict.body.contains("{\"expected-offset\": 4, \"provided-offset\": 3")
                    && conflict.body.contains("#mismatching-upload-offset") || !explains, "\(conflict.body)")
            let length = try append(4, bytes(4), true, path)
            #expect(length.status == 400 && length.body.contains("#inconsistent-upload-length"))
            let rest = Data(bytes(10).dropFirst(4))
            #expect(try append(4, rest, true, path).status == 201)
            let complete = try append(10, Data(), true, path)
            #expect(complete.status == 400 && complete.body.contains("#completed-upload"))
            let other = try create()
            #expect(try connection.request("DELETE", other, version, version: nil).status == 204)
            #expect(try connection.request("HEAD", other, version, version: nil).status == 410)
            #expect(server.statistics.uploads.map(\.isComplete) == [true, false])
        }
    }

    /// The server neither announces nor creates an upload for a client that uses another protocol version.
    @Test(arguments: dialects) func rejectsOtherVersion(dialect: LoopbackDialect) async throws {
        try await withServer(LoopbackOptions(dialect: dialect)) { server, url in
            let connection = try RawConnection(to: url)
            let options = try connection.request("OPTIONS", "/files/", ["Upload-Draft-Interop-Version": "7"], version: nil)
            #expect(options.status == (dialect == .final ? 204 : 400))
            #expect(options.headers["upload-draft-interop-version"] == (dialect == .final ? nil : dialect.rawValue))
            #expect(options.headers["accept-patch"] == (dialect == .final ? "application/partial-upload" : nil))
            guard dialect != .final else { return }
            let creation = try connection.request("POST", "/files/", ["Upload-Complete": "?1"], body: bytes(3), version: nil)
            #expect(creation.status == 400 && server.statistics.uploads.isEmpty)
        }
    }

    @Test func limitsRequests() async throws {
        let options = LoopbackOptions(maximumSize: 100, dialect: .draft8, minimumSize: 5, maximumAppendSize: 20, minimumAppendSize: 10)
        try await withServer(options) { _, url in
            let connection = try RawConnection(to: url)
            let post = { (headers: [String: String], count: Int) in
                try connection.request(
                    "POST", "/files/", ["Upload-Draft-Interop-Version": "8", "Upload-Complete": "?0"].merging(headers) { $1 },
                    body: bytes(count),
                    version: nil)
            }
            let limits = "max-size=100, min-size=5, max-append-size=20, min-append-size=10"
            for (headers, count, status) in [
                (["Upload-Length": "101"], 0, 413), (["Upload-Length": "4"], 0, 400), ([:], 21, 413), ([:], 9, 400),
            ] as [([String: String], Int, Int)] {
                let response = try post(headers, count)
                #expect(response.status == status && response.headers["upload-limit"] == limits)
            }
            #expect(try post([:], 10).status == 104)
        }
    }

    @Test func comparesDigests() async throws {
        try await withServer(LoopbackOptions(dialect: .draft10, sendsInterimResponses: false)) { server, url in
            let connection = try RawConnection(to: url)
            let own = "sha-256=:\(Data(SHA256.hash(data: bytes(10))).base64EncodedString()):"
            let other = "sha-256=:\(Data(SHA256.hash(data: bytes(11))).base64EncodedString()):"
            let post = { (headers: [String: String]) in
                try connection.request(
                    "POST", "/files/",
                    ["Upload-Draft-Interop-Version": "10", "Upload-Complete": "?1", "Want-Repr-Digest": "sha-256=10"].merging(headers) {
                        $1
                    },
                    body: bytes(10), version: nil)
            }
            let accepted = try post(["Repr-Digest": own, "Content-Digest": own])
            #expect(accepted.status == 201 && accepted.headers["repr-digest"] == own)
            #expect(try post(["Content-Digest": other]).status == 400)
            let rejected = try post(["Repr-Digest": other])
            #expect(rejected.status == 400 && rejected.headers["upload-complete"] == "?1")
            #expect(server.statistics.uploads.map(\.isComplete) == [true, false, false])
        }
    }

    /// The header is a dictionary of checksums with any algorithms (RFC 9530, section 2). The server knows only SHA-256.
    @Test(arguments: ["Content-Digest", "Repr-Digest"]) func ignoresDigestsOfOtherAlgorithms(header: String) async throws {
        try await withServer(LoopbackOptions(dialect: .final, sendsInterimResponses: false)) { _, url in
            let connection = try RawConnection(to: url)
            let own = "sha-256=:\(Data(SHA256.hash(data: bytes(10))).base64EncodedString()):"
            let other = "sha-256=:\(Data(SHA256.hash(data: bytes(11))).base64EncodedString()):"
            for (digest, status) in [
                ("sha-512=:AA==:", 201), ("sha-512=:AA==:, \(own)", 201), ("\(own);a=1,\tsha-512=:AA==:", 201),
                ("\(own), \(other)", 400), ("sha-512=:AA==:, \(other)", 400), ("sha-256=AA==", 400), ("sha-256", 400),
            ] {
                let response = try connection.request(
                    "POST", "/files/", ["Upload-Complete": "?1", header: digest], body: bytes(10), version: nil)
                #expect(response.status == status, "\(digest): \(response)")
                if !digest.contains(":") { #expect(response.body.contains("\"sha-256=:BASE64:\"")) }
            }
        }
    }

    @Test func decodesOnlyTwoHexadecimalDigits() async throws {
        try await withServer(LoopbackOptions(dialect: .final, sendsInterimResponses: false)) { server, url in
            let connection = try RawConnection(to: url)
            for (text, name) in [("a%20b", "a b"), ("a%+fb", "a%+fb"), ("a%-1", "a%-1"), ("a%2", "a%2"), ("a%", "a%")] {
                let headers = ["Upload-Complete": "?1", "Content-Disposition": "inline; filename*=UTF-8''\(text)"]
                #expect(try connection.request("POST", "/files/", headers, body: bytes(10), version: nil).status == 201)
                #expect(try server.contents(named: name) == [bytes(10)], "\(text)")
            }
        }
    }
}
