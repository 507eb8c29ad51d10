import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Settings of a session that override the endpoint's settings.
@Suite struct SessionSettingTests {
    @Test func sessionMaySendForm() async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [[.answer(200)], [.answer(200)]])
        transfer.endpoint.settings = ["field.project": "blue", "fileField": "upload"]
        transfer.options.settings = ["upload": "form", "fileField": "reel"]
        _ = try await transfer.run()
        transfer.options.settings = [:]
        _ = try await transfer.run()
        let requests = transfer.server.requests
        #expect(requests.map(\.method) == ["POST", "PUT"])
        #expect(requests.map(\.path) == ["/files/", "/files/a.bin"])
        let form = String(decoding: requests[0].body, as: UTF8.self)
        #expect(form.contains("name=\"project\"\r\n\r\nblue\r\n"))
        #expect(form.contains("name=\"reel\"; filename=\"a.bin\""))
        await transfer.end()
    }

    @Test func sessionMayUsePUT() async throws {
        var transfer = try TestTransfer("form", "/{path}", size: 3, answers: [[.answer(201)]])
        transfer.options.settings = ["upload": "put", "contentType": "text/x-own"]
        _ = try await transfer.run()
        #expect(transfer.server.requests.map { "\($0.method) \($0.path)" } == ["PUT /a.bin"])
        #expect(transfer.server.requests.first?.headers["content-type"] == "text/x-own")
        await transfer.end()
    }

    /// Only the endpoint's settings determine which servers are trusted, and which credentials they receive.
    @Test(arguments: ["origins", "insecure", "caFile", "proxy", "clientCertificate", "header.X-Own", "upload ", "field."])
    func rejectsEndpointSettings(key: String) async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [[.answer(200)]])
        transfer.options.settings = [key: "true"]
        let error = await transfer.failure()
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains(key) == true)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test(arguments: [["upload": "patch"], ["file.a": "relative"], ["file.a": ""], ["transferTimeout": "0"]])
    func rejectsInvalidValues(settings: [String: String]) async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [[.answer(200)]])
        transfer.options.settings = settings
        #expect(await transfer.failure()?.code == .invalidEndpoint)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    // MARK: URLs for single files

    @Test func sendsEachFileToItsURL() async throws {
        var transfer = try TestTransfer("put", size: 3) { _, _ in [.answer(200, body: "0123456789abcdef")] }
        transfer.options.settings = [
            "uploadURL.day/a.mov": transfer.server.url("/bucket/1?signature=0123456789abcdef"),
            "uploadURL.b.mov": transfer.server.url("/bucket/2"),
        ]
        transfer.remotePath = "day/a.mov"
        let receipt = try await transfer.run()
        #expect(receipt.remoteURL == transfer.server.url("/bucket/1"))
        #expect(receipt.serverResponse?.text.contains("0123456789abcdef") == false)
        transfer.remotePath = "b.mov"
        _ = try await transfer.run()
        #expect(transfer.server.requests.map(\.path) == ["/bucket/1?signature=0123456789abcdef", "/bucket/2"])
        transfer.options.uploadURL = transfer.server.url("/bucket/3")
        _ = try await transfer.run()
        #expect(transfer.server.requests.last?.path == "/bucket/3", "the item's own URL has precedence")
        await transfer.end()
    }

    /// Without this error, the file would be sent to an unintended address.
    @Test func rejectsFileWithoutURLIfOthersHaveOne() async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [[.answer(200)]])
        transfer.options.settings = ["uploadURL.a.mov": transfer.server.url("/1?signature=x")]
        transfer.remotePath = "b.mov"
        let error = await transfer.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.message.contains("a.mov") == true && error?.message.contains("b.mov") == true)
        #expect(error?.message.contains("signature") == false)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    /// If names that look the same were treated as equal, the second file would replace the first.
    @Test(arguments: [Array("caf\u{E9}".utf8), Array("cafe\u{301}".utf8), Array("caf\u{FFFD}".utf8), [0x63, 0x61, 0x66, 0xE9]])
    func comparesNamesByteForByte(name: [UInt8]) async throws {
        for given in ["caf\u{E9}", "cafe\u{301}", "caf\u{FFFD}"] {
            var transfer = try TestTransfer("put", size: 3) { _, _ in [.answer(201)] }
            transfer.options.settings = ["uploadURL.\(given)": transfer.server.url("/1")]
            transfer.remoteBytes = name
            let failure = await transfer.failure()
            #expect((failure == nil) == given.utf8.elementsEqual(name))
            #expect(transfer.server.requests.count == (failure == nil ? 1 : 0))
            await transfer.end()
        }
    }

    // MARK: Printed values

    /// Anyone who has an upload URL can write to it.
    @Test func descriptionsOmitValues() {
        var options = AttemptOptions(settings: ["uploadURL.a.mov": "https://host/a?signature=needle"])
        for _ in 0..<2 {
            var dumped = ""
            dump(options, to: &dumped)
            for text in ["\(options)", String(reflecting: options), dumped] {
                #expect(text.contains("uploadURL.a.mov") && !text.contains("needle"), "\(text)")
            }
            options.settings["field.a"] = "needle"
        }
    }

    // MARK: Validation before a session runs

    @Test(arguments: [
        ("put", TransferDirection.upload, ["uplaod": "put"], "uplaod"), ("put", .upload, ["upload": "puut"], "puut"),
        ("put", .upload, ["field.a": "1"], "field.a"), ("form", .upload, ["upload": "put", "file.a": "/x"], "file.a"),
        ("put", .upload, ["fileField": "x"], "fileField"), ("form", .upload, ["metadataPrefix": "x-"], "metadataPrefix"),
        ("put", .upload, ["uploadURL.a": "ftp://host/secret"], "uploadURL.a"),
        ("put", .upload, ["uploadURL.a": "https://me:secret@host/"], "uploadURL.a"),
        ("put", .upload, ["uploadURL.a": "https://host:99999/"], "uploadURL.a"),
        ("put", .upload, ["uploadURL.": "https://host/"], "uploadURL."),
        ("put", .upload, ["contentDisposition": "true"], "contentDisposition"),
        ("form", .upload, ["contentDisposition": "true"], "downloads"),
        ("get", .download, ["contentDisposition": "1"], "contentDisposition"), ("get", .download, ["upload": "put"], "upload"),
        ("get", .download, ["field.a": "1"], "field.a"),
        ("get", .download, ["parallelThreshold": "0"], "parallelThreshold"), ("get", .upload, [:], "download"),
    ])
    func rejectsUnusableSettings(mode: String, direction: TransferDirection, settings: [String: String], words: String) throws {
        let endpoint = Endpoint.http("https+\(mode)://host/")
        let error = #expect(throws: TransferError.self) {
            try HTTPTransport.validate(AttemptOptions(settings: settings), for: direction, at: endpoint)
        }
        #expect(error?.message.contains(words) == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test(arguments: [
        AttemptOptions(metadata: ["a": "b"]), AttemptOptions(headers: ["Authorization": "x"]),
        AttemptOptions(headers: ["X-A": "a\r\nb"]), AttemptOptions(expectedChecksum: "sha256:00"),
    ])
    func rejectsOptionsUnsupportedByPUT(options: AttemptOptions) {
        #expect(throws: TransferError.self) { try HTTPTransport.validate(options, for: .upload, at: .http("https+put://host/")) }
    }

    @Test(arguments: [TransferDirection.upload, .download]) func rejectsCreationURL(direction: TransferDirection) {
        let options = AttemptOptions(creationURL: "https://host/secret")
        let error = #expect(throws: TransferError.self) {
            try HTTPTransport.validate(options, for: direction, at: .http("https+put://host/"))
        }
        #expect(error?.failureClass == .unsupported && error?.message.contains("creation URL") == true)
        #expect(error?.message.contains("secret") == false)
    }

    /// The URL is validated even if this endpoint is only for downloads, because another endpoint of the account may perform the upload.
    @Test(
        arguments: [
            ("ftp://host.example/secret", "\"ftp://host.example\" has the scheme ftp"), ("/files/secret", "has no scheme"),
            ("https:///secret", "has no host"), ("https://host.example/a secret", "not a URL"),
            ("https://host.example:99999/secret", "has an invalid port"),
            ("https://me:secret@host.example/", "contains a user name or a password"),
            ("https://host.example/#secret", "ends with a fragment"),
        ], ["put", "form", "get"])
    func rejectsInvalidUploadURLs(_ invalid: (url: String, words: String), mode: String) {
        let endpoint = Endpoint.http("https+\(mode)://host/")
        let error = #expect(throws: TransferError.self) {
            try HTTPTransport.validate(AttemptOptions(uploadURL: invalid.url), for: .upload, at: endpoint)
        }
        #expect(error?.failureClass == .permanent && error?.code == .invalidUploadURL)
        #expect(error?.message.contains(invalid.words) == true, "\(String(describing: error))")
        #expect(error?.description.contains("secret") == false)
    }

    /// The prefix and a metadata key must not form the name of a reserved header.
    @Test(arguments: [("content-", "length"), ("author", "ization"), ("x-", "a b"), ("content-", "type"), ("Content-", "Type")])
    func rejectsMetadataThatFormsReservedHeaders(prefix: String, name: String) {
        let endpoint = Endpoint(transport: .http, address: "https+put://host/", settings: ["metadataPrefix": prefix])
        #expect(throws: TransferError.self) {
            try HTTPTransport.validate(AttemptOptions(metadata: [name: "1"]), for: .upload, at: endpoint)
        }
    }

    @Test func acceptsValidOptions() throws {
        let put = Endpoint(transport: .http, address: "https+put://host/{name}", settings: ["field.a": "1", "metadataPrefix": "x-"])
        try HTTPTransport.validate(AttemptOptions(metadata: ["a": "b"]), for: .upload, at: put)
        try HTTPTransport.validate(AttemptOptions(settings: ["upload": "form", "field.b": "{name}"]), for: .upload, at: put)
        try HTTPTransport.validate(AttemptOptions(settings: ["uploadURL.a.mov": "https://host/a?b=c"]), for: .upload, at: put)
        try HTTPTransport.validate(AttemptOptions(uploadURL: "HTTP://[::1]:8080/a%20b?X-Sig=a/b%2Bc=&d:e"), for: .upload, at: put)
        try HTTPTransport.validate(
            AttemptOptions(
                verification: .checksum, settings: ["contentDisposition": "true", "parallelThreshold": "1", "transferTimeout": "9"]),
            for: .download, at: put)
    }

    @Test func rejectsUploadModeAsEndpointSetting() {
        #expect(throws: TransferError.self) {
            try HTTPTransport.validate(Endpoint(transport: .http, address: "https+put://host/", settings: ["upload": "form"]))
        }
    }
}
