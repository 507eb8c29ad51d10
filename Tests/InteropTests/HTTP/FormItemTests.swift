import Crypto
import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Forms with several files, sent to a form handler written in Flask. The handler uses Werkzeug's parser, and its response lists the received
/// parts.
@Suite struct FormItemTests {
    private struct FormResponse: Decodable, Sendable {
        struct Part: Decodable, Equatable, Sendable {
            var field: String
            var name: String?
            var type: String?
            var length: Int
            var text = ""
            var sha256: String?
        }
        var parts: [Part]
    }

    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private func openQueue(_ endpoints: Endpoint...) async throws -> TransferQueue {
        try await interop.openQueue(
            Account("site", endpoints: endpoints), transports: [HTTPTransport(), TUSTransport(), SFTPTransport()])
    }

    private static func digest(_ data: Data) -> String { SHA256.hash(data: data).map { String(format: "%02x", $0) }.joined() }

    private func part(_ field: String, _ name: String, _ type: String, _ content: Data) -> FormResponse.Part {
        FormResponse.Part(field: field, name: name, type: type, length: content.count, sha256: Self.digest(content))
    }

    private func part(_ field: String, text: String) -> FormResponse.Part {
        FormResponse.Part(field: field, length: text.utf8.count, text: text, sha256: Self.digest(Data(text.utf8)))
    }

    /// The names of the parts contain quotes, line breaks and other characters. Werkzeug keeps escaped line breaks in names as they are.
    @Test func sendsFieldsAndFilesInOrder() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(
            .http(
                "http+form://127.0.0.1:\(server.port)/parts",
                options: HTTPOptions(fields: ["id": "{transfer}", "title": "unused"], responseLimit: 65_536)))
        let reel = try interop.file("Ærø 日本.mov", size: 3_000_000)
        let empty = try interop.file("empty.csv", size: 0)
        let notes = try interop.file("notes", size: 70_000)
        let json = Data(#"{"take":2}"#.utf8)
        let form = TransferItem.form([
            .text("Day \"one\"\r\n日本", field: "title"),
            .file(reel, field: "reel"),
            .data(json, field: "meta \"x\"", name: "a\"b\nc.json"),
            .text("", field: "empty"),
            .file(empty, field: "sheets[]", mediaType: "text/csv; header=present"),
            .file(notes, field: "sheets[]", name: "Notes 7%.txt"),
            .data(Data("second".utf8), name: "second", mediaType: "text/x-own"),
            .text("last", field: "title"),
        ])
        let session = try await queue.enqueue(.upload(items: [form], to: "site"))
        let spool = interop.folder.appending(path: "store/spool").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool).count == 1)
        let size = Int64(3_000_000 + json.count + 70_000 + 6)
        let before = try #require(try await queue.items(of: session.id).first)
        #expect(before.bytesTotal == size && before.source == reel && before.destination.description == "Ærø 日本.mov")
        #expect(before.formFiles.map(\.name) == ["Ærø 日本.mov", "a\"b\nc.json", "empty.csv", "Notes 7%.txt", "second"])
        #expect(before.formFiles.map(\.bytesTotal) == [3_000_000, Int64(json.count), 0, 70_000, 6])
        #expect(before.formFiles.map(\.source) == [reel, nil, empty, notes, nil])
        #expect(try await session.status.statistics.bytesTotal == size)
        try await queue.start()
        let response = try await session.response(as: FormResponse.self)
        #expect(
            response.parts == [
                part("id", text: "\(session.id)-0-1"),
                part("title", text: "Day \"one\"\r\n日本"),
                part("reel", "Ærø 日本.mov", "video/quicktime", try interop.content(reel)),
                part("meta \"x\"", "a\"b%0Ac.json", "application/json", json),
                part("empty", text: ""),
                part("sheets[]", "empty.csv", "text/csv; header=present", Data()),
                part("sheets[]", "Notes 7%.txt", "text/plain", try interop.content(notes)),
                part("file", "second", "text/x-own", Data("second".utf8)),
                part("title", text: "last"),
            ])
        let statistics = try await session.status.statistics
        #expect(statistics.bytesDone == size && statistics.files == 1 && statistics.filesDone == 1)
        await queue.shutdown()
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool) == [], "the data from memory is no longer needed")
    }

    /// The process is killed while the form is sent. The next process restarts the form from its first byte, including the data from memory.
    @Test func restartsFormAfterKill() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let file = try interop.file("large", size: 20 << 20)
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [root = interop.folder.path as String, file = file.string as String, port = server.port as Int] in
            let queue = try await TransferQueue(
                storage: .folder(FilePath(root).appending("store")), transports: [HTTPTransport()])
            try await queue.save(Account("site", endpoints: [.http("http+form://127.0.0.1:\(port)/slow")]))
            let form = TransferItem.form(
                fields: ["title": "Day one"], files: [.data(Data("first".utf8), name: "first"), .file(file), .file(file, name: "again")])
            let session = try await queue.enqueue(.upload(items: [form], to: "site"))
            try await queue.start()
            // By now, the whole second file and the beginning of the third file have been sent.
            await session.waitUntilSent(21 << 20)
            kill(getpid(), SIGKILL)
        }
        let queue = try await openQueue(
            .http("http+form://127.0.0.1:\(server.port)/parts", options: HTTPOptions(responseLimit: 65_536)))
        let id = try #require(try await queue.sessions().first?.id)
        try await queue.start()
        let session = try await queue.session(id)
        let content = try interop.content(file)
        #expect(
            try await session.response(as: FormResponse.self).parts == [
                part("title", text: "Day one"), part("file", "first", "application/octet-stream", Data("first".utf8)),
                part("file", "large", "application/octet-stream", content), part("file", "again", "application/octet-stream", content),
            ])
        await queue.shutdown()
    }

    @Test func failsWithoutFileAndSucceedsOnceFileIsBack() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http("http+form://127.0.0.1:\(server.port)/parts"))
        let files = try [interop.file("a", size: 10), interop.file("b", size: 20)]
        let form = TransferItem.form(files: files.map { .file($0) } + [.data(Data("c".utf8), name: "c")])
        let session = try await queue.enqueue(.upload(items: [form], to: "site"))
        try FileManager.default.removeItem(atPath: files[1].string)
        try await queue.start()
        let error = try await #require(throws: TransferError.self) { try await session.value }
        #expect(error.failureClass == .sourceLost && error.message.contains(files[1].string))
        // The file returns with another size. Each attempt sends the current files.
        _ = try interop.file("b", size: 30)
        try await queue.retry(session.id)
        #expect(try await session.response(as: FormResponse.self).parts.map(\.length) == [10, 30, 1])
        #expect(try await session.status.statistics.bytesDone == 41)
        await queue.shutdown()
    }

    @Test func rejectsFormsThatAreInvalidOrHaveNoEndpoint() async throws {
        let form = TransferItem.form(files: [.file(try interop.file("a", size: 1))])
        let folder = TransferItem.form(files: [.file(FilePath(interop.folder.path))])
        let noFile = TransferItem.form(fields: ["a": "b"], files: [])
        let many = TransferItem.form(files: (0...100).map { .data(Data(), name: "\($0)") })
        let long = TransferItem.form(
            fields: ["a": String(repeating: "x", count: 300_000)], files: [.data(Data(), name: "a")])
        var copied = form
        copied.keepsCopy = true
        let put = Endpoint.http("http+put://127.0.0.1:1/")
        let cases: [([Endpoint], TransferItem, String)] = [
            ([.tus("http://127.0.0.1:1/")], form, "\"tus\" can't send forms"),
            ([Endpoint(transport: .sftp, address: "sftp://me@127.0.0.1:1/")], form, "\"sftp\" can't send forms"),
            ([put], form, "https+form://"),
            ([.http("http+form://127.0.0.1:1/", options: HTTPOptions(files: ["a": ["/b"]]))], form, "file.NAME"),
            ([.http("http+form://127.0.0.1:1/")], folder, "can only contain files"),
            ([.http("http+form://127.0.0.1:1/")], noFile, "at least one file"),
            ([.http("http+form://127.0.0.1:1/")], many, "at most 100"),
            ([.http("http+form://127.0.0.1:1/")], long, "262144 bytes"),
            (
                [.http("http+form://127.0.0.1:1/")], .form(files: [.data(Data(), name: "a", mediaType: "text/plain\r\nX-Own: 1")]),
                "media type"
            ),
            ([.http("http+form://127.0.0.1:1/")], .form(files: [.data(Data(), field: "", name: "a")]), "field is empty"),
            ([.http("http+form://127.0.0.1:1/")], copied, "keepsCopy"),
        ]
        let queue = try await openQueue(put)
        for (endpoints, item, words) in cases {
            try await queue.save(Account("site", endpoints: endpoints))
            let error = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "site")) }
            #expect(error.message.contains(words), "\(error.message)")
        }
        // An existing session accepts no form either.
        try await queue.save(Account("site", endpoints: [put]))
        let session = try await queue.enqueue(try .upload([interop.file("b", size: 1)], to: "site"))
        await #expect(throws: QueueError.self) { try await queue.addItems([form], to: .id(session.id)) }
        #expect(try await queue.items(of: session.id).count == 1)
        await queue.shutdown()
    }

    /// If a form follows a folder in the session, the queue stores the form differently, but sends it in the same way.
    @Test func usesEndpointThatReceivesForms() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(
            .http("http+put://127.0.0.1:1/"), .http("http+form://127.0.0.1:\(server.port)/parts"))
        let file = try interop.file("a", size: 10)
        let folder = interop.folder.appending(path: "folder")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let form = TransferItem.form(files: [.data(Data("x".utf8), name: "x"), .file(file)])
        let session = try await queue.enqueue(.upload(items: [form, TransferItem(folder.path)], to: "site"))
        try await queue.addItems([.form(files: [.data(Data("y".utf8), name: "y")], as: "day/two")], to: .id(session.id))
        let waiting = try await queue.items(of: session.id)
        #expect(waiting.map(\.formFiles.count) == [2, 0, 1])
        try await queue.start()
        #expect(try await session.response(as: FormResponse.self).parts.map(\.length) == [1, 10])
        let second = try #require(try await queue.items(of: session.id).last)
        #expect(second.destination.description == "day/two")
        #expect(try second.response(as: FormResponse.self).parts == [part("file", "y", "application/octet-stream", Data("y".utf8))])
        await queue.shutdown()
    }

    @Test func limitsResponse() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let queue = try await openQueue(.http("http+form://127.0.0.1:\(server.port)/parts"))
        // The response is longer than 64 KiB. By default, the engine keeps only this much of a response.
        let form = TransferItem.form(
            fields: ["long": String(repeating: "x", count: 100_000)], files: [.data(Data("a".utf8), name: "a")])
        let short = try await queue.enqueue(.upload(items: [form], to: "site"))
        let options = SessionOptions(settings: HTTPOptions(responseLimit: 200_000).settings)
        let long = try await queue.enqueue(.upload(items: [form], to: "site", options: options))
        try await queue.start()
        #expect(try await long.response(as: FormResponse.self).parts.map(\.length) == [100_000, 1])
        let error = try await #require(throws: TransferError.self) { try await short.response(as: FormResponse.self) }
        #expect(error.code == .invalidResponse && error.message.contains("responseLimit"))
        #expect(try await queue.items(of: short.id).first?.serverResponse?.text.utf8.count == 4_096)
        await queue.shutdown()
    }
}
