import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// A value of ``Dialect`` describes the terms of one protocol version, such as header names. With a dialect other than tus 1.0.0, the client
/// sends none of the terms of tus 1.0.0.
@Suite struct DialectTests {
    /// A dialect in which each term differs from tus 1.0.0.
    private static let other = {
        var dialect = Dialect.tus
        dialect.versionHeader = "Other-Version"
        dialect.version = "7"
        dialect.patchContentType = "application/other-part"
        dialect.creationContentType = "application/other-whole"
        dialect.offsetHeader = "Other-Offset"
        dialect.lengthHeader = "Other-Length"
        dialect.metadataHeader = "Other-Metadata"
        dialect.deferredLengthHeader = "Other-Length-Follows"
        dialect.concatenationHeader = "Other-Parts"
        dialect.checksumHeader = "Other-Checksum"
        dialect.checksumMismatch = 499
        dialect.expiryHeader = "Other-Expiry"
        dialect.versionsHeader = "Other-Versions"
        dialect.extensionsHeader = "Other-Extensions"
        dialect.maximumSizeHeader = "Other-Maximum"
        dialect.checksumAlgorithmsHeader = "Other-Algorithms"
        return dialect
    }()

    /// A response of a server that uses the other dialect.
    private static func answer(_ status: Int, _ headers: [String: String] = [:]) -> ServerStep {
        .answer(status, headers.merging(["Other-Version": "7"]) { given, _ in given })
    }

    private static let created = answer(201, ["Location": "/files/1", "Other-Expiry": "Wed, 25 Jun 2014 16:00:00 GMT"])

    private static func offset(_ offset: Int) -> ServerStep { answer(200, ["Other-Offset": "\(offset)"]) }

    private func upload(
        offers: String, features: [String: String] = [:], verifies: Bool = false, segments: Int = 1,
        _ script: @escaping ScriptedServer.Script
    ) throws -> (TestUpload, TUSTransport) {
        let words = features.merging(["Other-Versions": "6,7", "Other-Extensions": offers]) { given, _ in given }
        var upload = try TestUpload(size: 10, options: [Self.answer(204, words)], trial: [Self.answer(499)], script)
        if verifies { upload.options.verification = .checksum }
        upload.options.segmentsPerFile = segments
        upload.endpoint.settings["parallelThreshold"] = "1"
        upload.endpoint.settings["dialect"] = "tus"
        return (upload, TUSTransport(dialect: Self.other, now: { .now }))
    }

    /// Checks that no request contains a term of tus 1.0.0.
    private func check(_ upload: TestUpload) {
        for request in upload.server.requests {
            for (name, value) in request.headers.merging(request.trailers, uniquingKeysWith: { $0 + "\n" + $1 }) {
                let field = "\(name): \(value)".lowercased()
                #expect(!["tus-", "upload-", "offset+octet"].contains { field.contains($0) }, "\(request.method) has \(field)")
            }
            if request.method != "OPTIONS" { #expect(request.headers["other-version"] == "7") }
        }
    }

    private func end(_ upload: TestUpload, _ transport: TUSTransport) async {
        check(upload)
        await transport.shutdown()
        await upload.end()
    }

    @Test func testDialectReplacesEachTerm() {
        for (tus, other) in zip(Mirror(reflecting: Dialect.tus).children, Mirror(reflecting: Self.other).children) {
            // tus has no terms of the IETF protocol *Resumable Uploads for HTTP*.
            if tus.label != "ietf" { #expect("\(tus.value)" != "\(other.value)", "\(tus.label ?? "")") }
        }
    }

    @Test func resumesInterruptedUpload() async throws {
        let (upload, transport) = try upload(
            offers: "creation,creation-with-upload,checksum", features: ["Other-Algorithms": "sha256"], verifies: true
        ) { _, number in
            switch number {
            case 0: [Self.created]
            case 1: [.read(4), .reset]
            case 2, 3: [Self.answer(200, ["Other-Offset": "4", "Other-Length": "10", "Date": "Wed, 25 Jun 2014 15:00:00 GMT"])]
            case 4: [.raw("HTTP/1.1 100 Continue\r\n\r\n"), Self.answer(499)]
            case 5: [Self.offset(4)]
            default: [Self.offset(10)]
            }
        }
        let error = await #expect(throws: TransferError.self) { try await upload.run(by: transport) }
        #expect(error?.failureClass == .transient)
        #expect(upload.recorder.checkpoints.last?.expiresAt == Date(timeIntervalSince1970: 1_403_712_000))
        #expect(try await upload.run(from: upload.recorder.checkpoints.last, by: transport).bytes == 10)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH", "HEAD", "PATCH"])
        let requests = upload.requests
        #expect(requests[0].headers["other-length"] == "10")
        #expect(requests[0].headers["other-metadata"]?.contains("filename ") == true)
        for (request, offset) in [(requests[1], 0), (requests[4], 4), (requests[6], 4)] {
            #expect(request.headers["other-offset"] == "\(offset)")
            #expect(request.headers["other-checksum"]?.hasPrefix("sha256 ") == true)
            #expect(request.headers["content-type"] == "application/other-part")
        }
        await end(upload, transport)
    }

    @Test func sendsSmallFileWithCreation() async throws {
        let (upload, transport) = try upload(offers: "creation-with-upload") { _, _ in
            [Self.answer(201, ["Location": "/files/1", "Other-Offset": "10"])]
        }
        _ = try await upload.run(by: transport)
        #expect(upload.methods == ["POST"])
        #expect(upload.requests.first?.headers["content-type"] == "application/other-whole")
        await end(upload, transport)
    }

    @Test func sendsChecksumInTrailer() async throws {
        let (upload, transport) = try upload(
            offers: "checksum,checksum-trailer", features: ["Other-Algorithms": "sha256"], verifies: true
        ) { _, number in
            [number == 0 ? Self.created : Self.offset(10)]
        }
        _ = try await upload.run(by: transport)
        #expect(upload.requests[1].headers["trailer"] == "Other-Checksum")
        #expect(upload.requests[1].trailers["other-checksum"]?.hasPrefix("sha256 ") == true)
        await end(upload, transport)
    }

    @Test func concatenatesSegments() async throws {
        let (upload, transport) = try upload(offers: "concatenation", segments: 2) { request, number in
            switch request.method {
            case "POST": [Self.answer(201, ["Location": "/files/\(number)"])]
            case "DELETE": [Self.answer(204)]
            default: [Self.offset(request.method == "HEAD" ? 10 : 5)]
            }
        }
        _ = try await upload.run(by: transport)
        let creations = upload.requests.filter { $0.method == "POST" }.map { $0.headers["other-parts"] ?? "" }
        #expect(creations.prefix(2) == ["partial", "partial"] && creations.last?.hasPrefix("final;/files/") == true)
        await end(upload, transport)
    }

    @Test func sendsLengthOfStreamLater() async throws {
        let (upload, transport) = try upload(offers: "creation-defer-length") { _, number in
            [number == 0 ? Self.created : Self.offset(10)]
        }
        let stream = try TestStream(upload.file, total: 10, ahead: 10)
        _ = try await upload.run(source: stream.source, by: transport)
        #expect(upload.requests[0].headers["other-length-follows"] == "1")
        #expect(upload.requests.last?.headers["other-length"] == "10")
        await end(upload, transport)
    }

    @Test func readsServerTerms() async throws {
        let (upload, transport) = try upload(offers: "creation", features: ["Other-Maximum": "9"]) { _, _ in [.answer(500)] }
        let report = try await transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "7" && report.features == ["creation"] && report.maximumSize == 9)
        let tooLarge = await #expect(throws: TransferError.self) { try await upload.run(by: transport) }
        #expect(tooLarge?.code == .tooLarge)
        await end(upload, transport)
    }

    /// The server names other versions, in response to `OPTIONS` or when it rejects the creation (412). Or it names only the client's version,
    /// and nevertheless rejects the creation.
    @Test(
        arguments: [
            ("8,9", [:], "supports tus 8, 9; this transport supports 7"),
            ("7", ["Other-Versions": "8,9"], "supports tus 8,9; this transport supports 7"),
            ("7", [:], "supports tus 7, but rejects the request with 412"),
        ])
    func rejectsOtherVersions(offered: String, responseHeaders: [String: String], message: String) async throws {
        let (upload, transport) = try upload(offers: "creation", features: ["Other-Versions": offered]) { _, _ in
            [.answer(412, responseHeaders)]
        }
        let error = await #expect(throws: TransferError.self) { try await upload.run(by: transport) }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        await end(upload, transport)
    }
}
