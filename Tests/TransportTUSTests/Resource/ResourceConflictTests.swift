import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Requests that the server rejects because their offset differs from the server's offset (409).
@Suite struct ResourceConflictTests {
    private static let type = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"
    private static let problem = document("20")

    /// A problem document whose `expected-offset` is the given text.
    private static func document(_ offset: String, type: String = type) -> String {
        "{\"type\": \"\(type)\", \"title\": \"x\", \"expected-offset\": \(offset), \"provided-offset\": 0}"
    }

    /// Uploads a file to a server that already has 20 bytes, and that rejects the first request with content.
    private func upload(
        _ version: String, header: String?, body: String, mediaType: String = "application/problem+json"
    ) async throws -> TestUpload {
        var upload = try TestUpload.resource(size: 100, version: version) { request, number in
            switch request.method {
            case "POST": return [.answer(201, ["Location": "/up/1"])]
            case "HEAD": return [.answer(204, ["Upload-Offset": "20", "Upload-Complete": "?0"])]
            default:
                guard number == 1 else { return [.answer(200, ["Upload-Complete": "?1"])] }
                let headers = ["Upload-Complete": "?0", "Content-Type": mediaType].merging(header.map { ["Upload-Offset": $0] } ?? [:]) {
                    $1
                }
                return [.answer(409, headers, body: body)]
            }
        }
        upload.options.creation = .separate
        _ = try await upload.run()
        return upload
    }

    private func check(_ upload: TestUpload, requestsOffset: Bool) async {
        #expect(upload.methods == ["POST", "PATCH"] + (requestsOffset ? ["HEAD"] : []) + ["PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "20" && upload.requests.last?.contentLength == 80)
        await upload.end()
    }

    /// From version 9 on, the response contains the right offset, in a header, in a problem document, or in both.
    @Test(
        arguments: ["8", "9", "10"], [["20", problem], ["20", ""], ["", problem]])
    func resolvesConflict(version: String, response: [String]) async throws {
        let upload = try await upload(version, header: response[0].isEmpty ? nil : response[0], body: response[1])
        await check(upload, requestsOffset: version == "8")
    }

    /// The media type may have parameters, and is not case-sensitive. The type may be a relative URL, and JSON may escape its slashes.
    @Test(arguments: [
        ("Application/Problem+JSON; charset=utf-8", problem),
        ("application/problem+json", document("20", type: "/http-problem-types#mismatching-upload-offset")),
        ("application/problem+json", problem.replacing("/", with: "\\/")),
    ])
    func acceptsOtherSpellings(mediaType: String, body: String) async throws {
        await check(try await upload("10", header: nil, body: body, mediaType: mediaType), requestsOffset: false)
    }

    /// The client requests the offset if the response contains no valid offset, or two different offsets.
    @Test(
        arguments: [
            (nil, ""), (nil, "[]"), (nil, "{\"expected-offset\": 20}"), (nil, document("20", type: "about:blank")),
            (nil, document("20", type: "https://iana.org/assignments/http-problem-types#completed-upload")), (nil, document("\"20\"")),
            (nil, document("-1")), (nil, document("20.5")), (nil, document("1e99")), (nil, document("72057594037927937")),
            (nil, document("18446744073709551616")), (nil, document("null")), (nil, document("20").replacing("}", with: "")),
            (nil, String(repeating: "[", count: 60_000)), (nil, String(repeating: " ", count: 65_536) + problem),
            ("10", problem), ("x", document("0")),
        ] as [(String?, String)])
    func requestsOffsetIfResponseHasNone(header: String?, body: String) async throws {
        await check(try await upload("10", header: header, body: body), requestsOffset: true)
    }

    @Test func ignoresDocumentOfOtherMediaType() async throws {
        await check(try await upload("10", header: nil, body: Self.problem, mediaType: "application/json"), requestsOffset: true)
    }

    /// An offset beyond the end of the file is implausible, although it is a valid number.
    @Test(arguments: ["101", "72057594037927936"]) func rejectsImplausibleOffset(offset: String) async throws {
        var upload = try TestUpload.resource(
            size: 100, version: "10",
            answers: [
                [.answer(201, ["Location": "/up/1"])],
                [.answer(409, ["Content-Type": "application/problem+json"], body: Self.document(offset))],
            ])
        upload.options.creation = .separate
        #expect(await upload.failure()?.failureClass == .resumeLost)
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func endsIfConflictsRepeat() async throws {
        var upload = try TestUpload.resource(size: 100, version: "10") { request, _ in
            switch request.method {
            case "POST": [.answer(201, ["Location": "/up/1"])]
            case "HEAD": [.answer(204, ["Upload-Offset": "50", "Upload-Complete": "?0"])]
            default:
                [
                    .answer(
                        409, ["Content-Type": "application/problem+json"],
                        body: Self.document("\((request.headers["upload-offset"].flatMap { Int($0) } ?? 0) + 10)"))
                ]
            }
        }
        upload.options.creation = .separate
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "PATCH", "PATCH", "PATCH", "HEAD"])
        await upload.end()
    }
}
