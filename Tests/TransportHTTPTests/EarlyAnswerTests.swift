import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Servers that say that they are done while the file is still on its way.
@Suite struct EarlyAnswerTests {
    /// Takes the beginning of a large body, says that all is well, and closes.
    private static func answer(_ status: Int = 200, _ headers: String = "Content-Length: 0\r\n") -> [ServerStep] {
        [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000),
            .raw("HTTP/1.1 \(status) Scripted\r\n\(headers)Connection: close\r\n\r\n"), .silence,
        ]
    }

    /// It can't have the file, whatever it says, so it is not asked for ever.
    @Test func aPutIsTriedThreeTimes() async throws {
        let transfer = try TestTransfer("put", size: 20_000_000) { _, _ in Self.answer() }
        for failureClass in [FailureClass.protocolViolation, .protocolViolation, .unsupported] {
            let failure = try #require(await transfer.failure())
            #expect(failure.failureClass == failureClass)
            #expect(failure.code == .badAnswer)
            #expect(failure.message.contains("of 20000000 bytes") && failure.message.contains("check"))
        }
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    @Test func whatWasAnAccidentIsOver() async throws {
        let transfer = try TestTransfer("put", size: 20_000_000) { _, number in number < 2 ? Self.answer() : [.answer(201)] }
        for _ in 0..<2 { #expect(await transfer.failure()?.failureClass == .protocolViolation) }
        #expect(try await transfer.run().bytes == 20_000_000)
        await transfer.end()
    }

    /// There may be a record of it already; another one would be one too many.
    @Test(arguments: [(201, "Content-Length: 0\r\n"), (303, "Content-Length: 0\r\nLocation: /done\r\n")])
    func aFormIsNotSentAgain(status: Int, headers: String) async throws {
        let transfer = try TestTransfer("form", size: 20_000_000) { _, _ in Self.answer(status, headers) }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .permanent, "and not by the next endpoint either")
        #expect(failure.code == .badAnswer)
        await transfer.end()
    }

    /// As HTTP allows: the answer first, and then the rest of the body.
    @Test func aServerThatGoesOnReadingHasTheFile() async throws {
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

    /// It does not say that it will close, and does so with much of the body unread.
    @Test func aConnectionThatBreaksThenBringsNoFile() async throws {
        let steps: [ServerStep] = [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000), .raw("HTTP/1.1 200 Scripted\r\nContent-Length: 0\r\n\r\n"),
            // Whoever sends that much on has come by the answer.
            .read(20_000_000), .close,
        ]
        let transfer = try TestTransfer("put", size: 100_000_000) { _, _ in steps }
        for failureClass in [FailureClass.protocolViolation, .protocolViolation, .unsupported] {
            let failure = try #require(await transfer.failure())
            #expect(failure.failureClass == failureClass)
            #expect(failure.code == .badAnswer)
        }
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    /// Its answer ends in mid-air, so nobody knows what it would have been.
    @Test(arguments: ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "\r\n"])
    func aConnectionThatBreaksInTheAnswerBringsNone(rest: String) async throws {
        let steps: [ServerStep] = [
            .raw("HTTP/1.1 100 Scripted\r\n\r\n"), .read(1_000_000), .raw("HTTP/1.1 200 Scripted\r\n\(rest)"), .close,
        ]
        let transfer = try TestTransfer("put", size: 20_000_000) { _, _ in steps }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .transient)
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }
}
