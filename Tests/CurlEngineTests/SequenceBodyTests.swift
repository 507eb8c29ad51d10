import CurlEngine
import ScriptedHTTP
import Testing
import TransportSupport

@Suite struct SequenceBodyTests {
    @Test(arguments: [0, 1, 3_000_000]) func sendsPartsInOrder(size: Int) async throws {
        let server = try ScriptedServer(answers: [[.answer(200)]])
        let engine = CurlEngine()
        let file = try TemporaryFile(size: size + 10)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let body = HTTPBody.sequence([
            .bytes([]), .bytes([1, 2, 3]), .file(reader, offset: 0, length: Int64(size)),
            .sequence([.bytes([4]), .file(reader, offset: Int64(size), length: 10)]), .bytes([5, 6]),
        ])
        let response = try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: body))
        let content = TemporaryFile.content(size: size + 10)
        var expected: [UInt8] = [1, 2, 3]
        expected += content[..<size]
        expected.append(4)
        expected += content[size...]
        expected += [5, 6]
        #expect(server.requests.first?.body == expected)
        #expect(server.requests.first?.headers["content-length"] == "\(size + 16)")
        #expect(response.sent.accepted == Int64(size + 16))
        await engine.shutdown()
        server.stop()
    }

    @Test func rejectsStreamAsPart() async throws {
        let engine = CurlEngine()
        for part in [HTTPBody.stream(HTTPBodyStream(), length: 1), .stream(HTTPBodyStream()), .none, .sequence([.none])] {
            let request = HTTPRequest(method: "POST", url: "http://127.0.0.1:1/", body: .sequence([.bytes([1]), part]))
            let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(request) }
            #expect(error?.kind == .invalidRequest)
        }
        await engine.shutdown()
    }
}
