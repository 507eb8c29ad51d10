import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Servers that report success before they have received the whole file.
@Suite struct EarlyResponseTests {
    /// Reads the start of a large body, and responds with success and `Connection: close`.
    private static func answer(_ status: Int = 200, _ headers: String = "Content-Length: 0\r\n") -> [ServerStep] {
        [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000),
            .raw("HTTP/1.1 \(status) Scripted\r\n\(headers)Connection: close\r\n\r\n"), .silence,
        ]
    }

    @Test func triesPUTThreeTimes() async throws {
        let transfer = try TestTransfer("put", size: 20_000_000) { _, _ in Self.answer() }
        for failureClass in [FailureClass.protocolViolation, .protocolViolation, .unsupported] {
            let failure = try #require(await transfer.failure())
            #expect(failure.failureClass == failureClass)
            #expect(failure.code == .invalidResponse)
            #expect(failure.message.contains("of 20000000 bytes") && failure.message.contains("check"))
        }
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    @Test func recoversAfterTwoEarlyResponses() async throws {
        let transfer = try TestTransfer("put", size: 20_000_000) { _, number in number < 2 ? Self.answer() : [.answer(201)] }
        for _ in 0..<2 { #expect(await transfer.failure()?.failureClass == .protocolViolation) }
        #expect(try await transfer.run().bytes == 20_000_000)
        await transfer.end()
    }

    /// The server may already have stored the form. Sending the form again could store the file twice.
    @Test(arguments: [(201, "Content-Length: 0\r\n"), (303, "Content-Length: 0\r\nLocation: /done\r\n")])
    func doesNotRepeatForm(status: Int, headers: String) async throws {
        let transfer = try TestTransfer("form", size: 20_000_000) { _, _ in Self.answer(status, headers) }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .permanent, "the next endpoint must not repeat the request")
        #expect(failure.code == .invalidResponse)
        await transfer.end()
    }

    /// HTTP permits a server to send its response before it reads the rest of the body.
    @Test func acceptsEarlyResponseIfServerContinuesReading() async throws {
        let transfer = try TestTransfer(
            "put", size: 20_000_000,
            answers: [
                [
                    .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000), .raw("HTTP/1.1 200 Scripted\r\nContent-Length: 0\r\n\r\n"),
                    .read(nil),
                ]
            ])
        #expect(try await transfer.run().bytes == 20_000_000)
        await transfer.end()
    }

    /// The server closes the connection without announcing it, and has not read most of the body.
    @Test func rejectsSuccessWithoutWholeBody() async throws {
        let steps: [ServerStep] = [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000), .raw("HTTP/1.1 200 Scripted\r\nContent-Length: 0\r\n\r\n"),
            // When the server has read 20,000,000 more bytes, the client has received the response.
            .read(20_000_000), .reset,
        ]
        let transfer = try TestTransfer("put", size: 100_000_000) { _, _ in steps }
        for failureClass in [FailureClass.protocolViolation, .protocolViolation, .unsupported] {
            let failure = try #require(await transfer.failure())
            #expect(failure.failureClass == failureClass)
            #expect(failure.code == .invalidResponse)
        }
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    /// The response is incomplete, so its meaning is unknown. A response without a length ends with the connection. Such a response is
    /// incomplete only if the connection is reset (RFC 9112, section 8).
    @Test(arguments: [
        ("Content-Length: 10\r\n\r\nhalf", ServerStep.close), ("Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", .close),
        ("\r\n", .reset),
    ])
    func retriesAfterTruncatedResponse(rest: String, end: ServerStep) async throws {
        let steps: [ServerStep] = [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000), .raw("HTTP/1.1 200 Scripted\r\n\(rest)"), end,
        ]
        let transfer = try TestTransfer("put", size: 20_000_000) { _, _ in steps }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .transient)
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }
}
