import Crypto
import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP

/// The queue and the transport for plain HTTP, with two servers: nginx, which receives files by PUT, and a form handler written in Flask.
@Suite struct PlainHTTPTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private func openQueue(_ endpoint: Endpoint) async throws -> TransferQueue {
        try await interop.openQueue(Account("real", endpoints: [endpoint]), transports: [HTTPTransport()])
    }

    private func options(metadata: [String: String] = [:]) -> SessionOptions {
        SessionOptions(metadata: metadata, retry: RetryPolicy(maximumAttempts: 1_000))
    }

    @Test(arguments: PlainServer.Kind.allCases) func transfersFilesOfManySizes(kind: PlainServer.Kind) async throws {
        let server = try await PlainServer.start(kind, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http(server.address()))
        let files = try [0, 1, 5_000, 300_000, 20 << 20].map { try interop.file("file-\($0).mov", size: $0) }
        let session = try await queue.enqueue(try .upload(files, to: "real", options: options()))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        for (item, file) in zip(try await queue.items(of: session.id), files) {
            #expect(try server.content(of: item.destination) == interop.content(file))
            #expect(item.serverResponse?.status == 201)
        }
        await queue.shutdown()
    }

    @Test(arguments: PlainServer.Kind.allCases) func completesAfterTwoLostConnections(kind: PlainServer.Kind) async throws {
        let server = try await PlainServer.start(kind, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        relay.cut(afterBytes: 2 << 20)
        relay.cut(afterBytes: 6 << 20)
        let queue = try await openQueue(.http(server.site.address(port: Int(relay.port))))
        let file = try interop.file("large", size: 8 << 20)
        let session = try await queue.enqueue(try .upload([file], to: "real", options: options()))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(relay.hasCutAll)
        #expect(try server.content(of: RemotePath("large")) == interop.content(file))
        await queue.shutdown()
    }

    @Test func sendsFormFields() async throws {
        struct FormResponse: Decodable {
            struct File: Decodable, Equatable {
                var field: String
                var name: String
                var type: String
            }
            var fields: [String: String]
            var files: [File]
        }
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let name = "Ærø \"7\"; a=b.mov"
        let queue = try await openQueue(
            .http(server.address(), options: HTTPOptions(fileField: "reel \"x\"", fields: ["name": "{name}", "empty": ""])))
        let item = TransferItem(try interop.file("local", size: 700_000), as: try RemotePath("day/\(name)"))
        let session = try await queue.enqueue(
            .upload(items: [item], to: "real", options: options(metadata: ["note\r\n": "line 1\r\nline 2", "naïve": "日本語"])))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        let status = try #require(try await queue.items(of: session.id).first)
        #expect(status.serverResponse?.mediaType == "application/json")
        let response = try JSONDecoder().decode(FormResponse.self, from: Data(try #require(status.serverResponse?.text).utf8))
        #expect(response.fields == ["name": name, "empty": "", "note%0D%0A": "line 1\r\nline 2", "naïve": "日本語"])
        #expect(response.files == [.init(field: "reel \"x\"", name: name, type: "video/quicktime")])
        await queue.shutdown()
    }

    /// First, an account uses PUT, but the settings of a session select a form. Then, two download sessions set an expected checksum.
    @Test func appliesSessionSettingsAndExpectedChecksum() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http(server.address().replacing("http+form:", with: "http+put:")))
        var options = options()
        options.settings = ["upload": "form", "field.take": "2"]
        let file = try interop.file("local", size: 3_000)
        let session = try await queue.enqueue(try .upload([file], to: "real", options: options))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        let response = try #require(try await queue.items(of: session.id).first?.serverResponse?.text)
        #expect(response.contains(#""take": "2""#) || response.contains(#""take":"2""#), "\(response)")
        await queue.shutdown()

        let files = try await PlainServer.start(.put, in: interop.folder.appending(path: "files"))
        defer { withExtendedLifetime(files) {} }
        let downloads = try await interop.openQueue(
            Account("real", endpoints: [.http(files.address())]), transports: [HTTPTransport()])
        let sent = try await downloads.enqueue(try .upload([file], to: "real"))
        try await downloads.start()
        #expect(try await sent.value.state == .completed)
        let content = try interop.content(file)
        let right = SHA256.hash(data: content).map { String(format: "%02x", $0) }.joined()
        for (checksum, state) in [(right, SessionState.completed), (String(repeating: "0", count: 64), .failed)] {
            let folder = FilePath(interop.folder.appending(path: checksum).path)
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            let received = try await downloads.enqueue(
                .download(
                    items: [.remote(try RemotePath("local"))], from: "real", to: folder,
                    options: SessionOptions(retry: RetryPolicy(maximumAttempts: 1), expectedChecksum: "sha256:\(checksum)")))
            // `value` throws if the session failed, so the test checks the state instead.
            _ = try? await received.value
            #expect(try await received.status.state == state)
            #expect(FileManager.default.fileExists(atPath: folder.appending("local").string) == (state == .completed))
        }
        let error = await #expect(throws: QueueError.self) {
            try await downloads.enqueue(
                try .upload([file], to: "real", options: SessionOptions(expectedChecksum: "sha256:\(right)")))
        }
        #expect(error?.code == .invalidRequest)
        await downloads.shutdown()
    }

    @Test func sendsSeveralFilesInForm() async throws {
        struct FormResponse: Decodable {
            struct File: Decodable, Equatable {
                var field: String
                var name: String
                var type: String
                var length: Int
            }
            var length: Int
            var files: [File]
        }
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let sheet = try interop.file("sheet.csv", size: 3_000_000)
        let empty = try interop.file("empty.txt", size: 0)
        _ = try interop.file("a.mov.jpg", size: 70_000)
        _ = try interop.file("b.mov.jpg", size: 1)
        let queue = try await openQueue(
            .http(
                server.address(),
                options: HTTPOptions(fileField: "reel", files: ["picture": ["{source}.jpg"], "sheets": ["\(sheet)", "\(empty)"]])))
        let files = try [interop.file("a.mov", size: 5_000_000), interop.file("b.mov", size: 10)]
        let session = try await queue.enqueue(try .upload(files, to: "real", options: options()))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        for (item, (size, picture)) in zip(try await queue.items(of: session.id), [(5_000_000, 70_000), (10, 1)]) {
            let name = item.destination.description
            let response = try JSONDecoder().decode(FormResponse.self, from: Data(try #require(item.serverResponse?.text).utf8))
            #expect(
                response.files == [
                    .init(field: "picture", name: "\(name).jpg", type: "image/jpeg", length: picture),
                    .init(field: "sheets", name: "sheet.csv", type: "text/csv", length: 3_000_000),
                    .init(field: "sheets", name: "empty.txt", type: "text/plain", length: 0),
                    .init(field: "reel", name: name, type: "video/quicktime", length: size),
                ])
            #expect(try server.content(of: item.destination) == interop.content(item.source))
        }
        await queue.shutdown()
    }

    @Test func acceptsRedirectToPageAsSuccess() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http("http+form://127.0.0.1:\(server.port)/page?path={name}"))
        let session = try await queue.enqueue(try .upload([interop.file("small", size: 10)], to: "real"))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(try await queue.items(of: session.id).first?.remoteURL == "http://127.0.0.1:\(server.port)/page/done")
        await queue.shutdown()
    }

    /// The server takes longer than the stall timeout to respond after the last byte. Only the response timeout applies to this wait; the
    /// stall timeout applies while data is sent.
    @Test func waitsForSlowServer() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http("http+form://127.0.0.1:\(server.port)/slow"))
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 3), stallTimeout: .seconds(2), responseTimeout: .seconds(60))
        let session = try await queue.enqueue(
            try .upload([interop.file("large", size: 40 << 20)], to: "real", options: options))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(try await queue.items(of: session.id).first?.serverResponse?.text.contains("\((40 << 20) / 1_000_000)") == true)
        await queue.shutdown()
    }

    @Test(arguments: PlainServer.Kind.allCases) func failsOnlyTooLargeFile(kind: PlainServer.Kind) async throws {
        let server = try await PlainServer.start(kind, in: interop.folder.appending(path: "server"), largestBody: 1 << 20)
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http(server.address()))
        let files = try [20 << 20, 1_000].map { try interop.file("file-\($0)", size: $0) }
        let session = try await queue.enqueue(try .upload(files, to: "real", options: options()))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.state) == [.failed, .completed])
        #expect(items.first?.error?.code == .tooLarge)
        await queue.shutdown()
    }

    @Test(arguments: ["1.1", "2"]) func transfersFilesOverTLS(version: String) async throws {
        let server = try await PlainServer.start(.put, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let proxy = try await NginxProxy.start(
            in: interop.folder.appending(path: "proxy"), forwardingTo: server.port, largestBody: "100m")
        defer { withExtendedLifetime(proxy) {} }
        let settings = ["caFile": proxy.certificate, "httpVersion": version]
        let queue = try await openQueue(Endpoint(transport: .http, address: "https+put://127.0.0.1:\(proxy.port)/in/", settings: settings))
        let file = try interop.file("large", size: 5 << 20)
        let upload = try await queue.enqueue(try .upload([file], to: "real", options: options()))
        try await queue.start()
        #expect(try await upload.value.state == .completed)
        #expect(try server.content(of: RemotePath("in/large")) == interop.content(file))
        let folder = FilePath(interop.folder.appending(path: "received").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        let download = try await queue.enqueue(
            .download(items: [.remote(try RemotePath("large"))], from: "real", to: folder, options: options()))
        #expect(try await download.value.state == .completed)
        #expect(try interop.content(folder.appending("large")) == interop.content(file))
        let loggedVersion = version == "2" ? "HTTP/2.0" : "HTTP/1.1"
        let atProxy = try await proxy.requests
        #expect(atProxy.map { "\($0.version) \($0.method) \($0.status)" } == ["\(loggedVersion) PUT 201", "\(loggedVersion) GET 200"])
        await queue.shutdown()
    }

    /// Sends a stream before its end is known: with chunked transfer coding over HTTP/1.1, and in DATA frames over HTTP/2.
    @Test(.timeLimit(.minutes(10)), arguments: ["1.1", "2"]) func sendsLiveStreamOverTLS(version: String) async throws {
        let server = try await PlainServer.start(.put, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let proxy = try await NginxProxy.start(
            in: interop.folder.appending(path: "proxy"), forwardingTo: server.port, largestBody: "100m")
        defer { withExtendedLifetime(proxy) {} }
        let settings = ["caFile": proxy.certificate, "httpVersion": version]
        let queue = try await openQueue(Endpoint(transport: .http, address: "https+put://127.0.0.1:\(proxy.port)/in/", settings: settings))
        let content = try interop.content(interop.file("content", size: 3_000_000))
        let (stream, writer) = TransferItem.stream(as: "live")
        let session = try await queue.enqueue(.upload(items: [stream], to: "real"))
        try await queue.start()
        try await writer.write(content.prefix(1_000_000))
        // The request is under way although the stream has no end yet.
        await session.waitUntilSent(500_000)
        try await writer.write(content.dropFirst(1_000_000))
        writer.finish()
        #expect(try await session.value.statistics.bytesDone == content.count)
        #expect(try server.content(of: RemotePath("in/live")) == content)
        let requests = try await proxy.requests.map { "\($0.version) \($0.method) \($0.status)" }
        #expect(requests == ["HTTP/\(version == "2" ? "2.0" : version) PUT 201"])

        // The server must not store a file whose producer failed.
        let (broken, failing) = TransferItem.stream(as: "broken")
        let failed = try await queue.enqueue(.upload(items: [broken], to: "real"))
        try await failing.write(content.prefix(1_000_000))
        await failed.waitUntilSent(500_000)
        failing.fail(TransferError(.permanent, .unsupported, "The sensor is broken."))
        await #expect(throws: (any Error).self) { try await failed.value }
        await queue.shutdown()
        #expect(try server.content(of: RemotePath("in/broken")) == nil)
        #expect(try await proxy.requests.count { $0.status == 201 } == 1)
    }

    @Test func rejectsUntrustedCertificate() async throws {
        let server = try await PlainServer.start(.put, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let proxy = try await NginxProxy.start(in: interop.folder.appending(path: "proxy"), forwardingTo: server.port, largestBody: "1m")
        defer { withExtendedLifetime(proxy) {} }
        let queue = try await openQueue(.http("https+put://127.0.0.1:\(proxy.port)/"))
        let events = queue.events
        _ = try await queue.enqueue(try .upload([interop.file("file", size: 9)], to: "real"))
        try await queue.start()
        let error = await events.first { if case .accountBlocked("real", let error) = $0 { error } else { nil } }
        #expect(error?.failureClass == .trust)
        await queue.shutdown()
    }
}
