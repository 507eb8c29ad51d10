import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

/// Servers that report impossible sizes, ranges or dates.
@Suite struct HostileResponseTests {
    /// The server repeats the requested range although the file is shorter, or names another impossible range. The client then requests the whole
    /// file.
    @Test(arguments: ["bytes 0-16777215/10", "bytes 5-9/10", "bytes 0-9/x", "lines 0-9/10"])
    func doesNotRequestImpossibleRangeAgain(range: String) async throws {
        var transfer = try TestTransfer("get") { request, _ in
            guard request.headers["range"] != nil else { return [.answer(200, ["ETag": "\"v1\""], body: "0123456789")] }
            return [.answer(206, ["ETag": "\"v1\"", "Content-Range": range], body: "0123456789")]
        }
        transfer.options.segmentsPerFile = 4
        transfer.endpoint.settings = ["parallelThreshold": "5"]
        #expect(try await transfer.run().bytes == 10)
        #expect(transfer.content == "0123456789" && transfer.server.requests.map { $0.headers["range"] == nil } == [false, true])
        await transfer.end()
    }

    /// The response contains the rest of a file of unknown length. The content must not exceed the range.
    @Test(arguments: ["bytes 5-9/*", "bytes 5-9/10"]) func rejectsContentBeyondRange(range: String) async throws {
        let transfer = try TestTransfer(
            "get",
            answers: [
                [.raw("HTTP/1.1 200 Scripted\r\nETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"), .close],
                [
                    .raw("HTTP/1.1 206 Scripted\r\nETag: \"v1\"\r\nContent-Range: \(range)\r\nTransfer-Encoding: chunked\r\n\r\n"),
                    .raw(String(repeating: "5\r\n56789\r\n", count: 1_000)), .silence,
                ],
            ])
        #expect(await transfer.failure()?.failureClass == .transient)
        let failure = await transfer.failure(from: transfer.recorder.checkpoints.last)
        #expect(failure?.failureClass == .protocolViolation && failure?.message.contains("10") == true, "\(String(describing: failure))")
        #expect((transfer.content?.count ?? 0) <= 10)
        await transfer.end()
    }

    /// The checkpoints have impossible lengths, ranges or confirmed offsets. The download succeeds or restarts.
    @Test(arguments: [
        (#"{"validator":"\"v1\"","length":-1}"#, Int64(5)), (#"{"validator":"\"v1\"","length":9223372036854775807}"#, 5),
        (#"{"validator":"\"v1\"","received":[[0,9223372036854775807]]}"#, 5), (#"{"validator":"\"v1\""}"#, .max),
        (#"{"validator":"\"v1\"","name":"file"}"#, -1), (#"{"validator":"\"v1\"","name":"file"}"#, .min),
    ])
    func toleratesImpossibleCheckpoints(data: String, confirmed: Int64) async throws {
        let transfer = try TestTransfer("get") { _, _ in [.answer(200, ["ETag": "\"v1\""], body: "0123456789")] }
        let checkpoint = Checkpoint(data: Data(data.utf8), confirmed: confirmed)
        let failure = await transfer.failure(from: checkpoint)
        #expect(failure == nil || failure?.failureClass == .resumeLost)
        await transfer.end()
    }

    /// The time is the last date that HTTP can express.
    @Test func ignoresUnsupportedModificationTime() async throws {
        let transfer = try TestTransfer(
            "get", answers: [[.answer(200, ["Last-Modified": "Fri, 31 Dec 9999 23:59:59 GMT"], body: "content")]])
        #expect(try await transfer.run().bytes == 7)
        #expect(transfer.content == "content")
        await transfer.end()
    }

    @Test(arguments: [Int64.max, Int64.max - 1, 1 << 62, 1 << 57])
    func rejectsImpossibleLengths(length: Int64) async throws {
        for segments in [1, 4] {
            let headers = "ETag: \"v1\"\r\n"
            var transfer = try TestTransfer("get") { request, _ in
                let isRange = request.headers["range"] != nil
                let lengthHeaders = isRange ? "Content-Range: bytes 0-9/\(length)\r\nContent-Length: 10" : "Content-Length: \(length)"
                return [.raw("HTTP/1.1 \(isRange ? 206 : 200) Scripted\r\n\(headers)\(lengthHeaders)\r\n\r\n0123456789"), .close]
            }
            transfer.options.segmentsPerFile = segments
            let failure = await transfer.failure()
            #expect(failure?.failureClass == .protocolViolation)
            #expect(failure?.message.contains("\(length)") == true)
            #expect(transfer.content == nil)
            await transfer.end()
        }
    }

    /// libcurl ignores a length beyond the range of its integers, and reads until the end of the connection, so a truncated file would look complete.
    @Test(arguments: ["9223372036854775808", "18446744073709551615", "99999999999999999999999"])
    func rejectsLengthBeyondIntegers(length: String) async throws {
        let transfer = try TestTransfer(
            "get", answers: [[.raw("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: \(length)\r\n\r\n0123456789"), .close]])
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .protocolViolation)
        #expect(failure?.message.contains(length) == true)
        #expect(transfer.content == nil)
        await transfer.end()
    }

    /// A size that a file system may support, but that exceeds the free space of this machine.
    @Test func rejectsLengthBeyondFreeSpace() async throws {
        for segments in [1, 64] {
            var transfer = try TestTransfer("get") { request, _ in
                guard request.headers["range"] != nil else {
                    return [.raw("HTTP/1.1 200 Scripted\r\nContent-Length: \(1 << 55)\r\n\r\n0123456789"), .close]
                }
                return [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 0-9/\(1 << 55)"], body: "0123456789")]
            }
            transfer.options.segmentsPerFile = segments
            #expect(await transfer.failure()?.failureClass == .noSpace)
            await transfer.end()
        }
    }

    /// Random responses, composed of typical elements. Each attempt must end, and a receipt must contain the size of the file.
    @Test func toleratesRandomResponses() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        for round in 0..<300 {
            let answers = (0..<4).map { _ in Self.answer(&generator) }
            var transfer = try TestTransfer("get") { _, number in [.raw(answers[min(number, 3)]), .close] }
            transfer.options.segmentsPerFile = Int.random(in: 1...3, using: &generator)
            transfer.options.verification = Verification.allCases.randomElement(using: &generator) ?? .size
            transfer.endpoint.settings = ["parallelThreshold": "5"]
            do {
                let receipt = try await transfer.run()
                #expect(Int(receipt.bytes) == transfer.content?.utf8.count, "seed \(seed), round \(round): \(answers)")
            } catch {
                #expect(error is TransferError, "seed \(seed), round \(round): \(answers)")
            }
            await transfer.end()
        }
    }

    private static func answer(_ generator: inout SplitMix) -> String {
        let numbers = [
            "0", "1", "9", "10", "11", "-1", "", "x", "*", "1e3", "9223372036854775807", "9223372036854775808", "4294967296", " 10",
        ]
        func number() -> String { numbers.randomElement(using: &generator) ?? "" }
        let digests = [
            "md5:", "sha-256=:", ":", "=", "AAAA", "sha-256=:AAAA:", "\u{FF}", "sha-256=::;a=b,md5=:x:", "eB5eJF1ptWaXm4bijSPyxw==",
        ]
        let dates = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 00 Jan 0000 00:00:00 GMT", "1994", "", ": : :",
        ]
        let fields = [
            "Content-Length: \(number())", "Content-Length: 10", "Content-Range: bytes \(number())-\(number())/\(number())",
            "Content-Range: bytes 0-9/10", "Content-Range: bytes */\(number())", "Content-Range: \(number())", "ETag: \"v1\"", "ETag: \"",
            "ETag: W/\"v1\"", "ETag: ", "Last-Modified: \(dates.randomElement(using: &generator) ?? "")",
            "Date: \(dates.randomElement(using: &generator) ?? "")", "Content-MD5: \(digests.randomElement(using: &generator) ?? "")",
            "Repr-Digest: \(digests.randomElement(using: &generator) ?? "")", "Digest: \(digests.randomElement(using: &generator) ?? "")",
            "Content-Encoding: gzip", "Accept-Ranges: none", "Retry-After: \(number())", "Transfer-Encoding: chunked", "No colon",
            ": no name",
            "Content-Disposition: attachment; filename=\"../x\"", "Location: http://127.0.0.1:1/\(number())",
        ]
        let status = [200, 200, 206, 206, 206, 204, 304, 416, 307, 503, 999].randomElement(using: &generator) ?? 200
        let head = (0..<Int.random(in: 0...6, using: &generator)).compactMap { _ in fields.randomElement(using: &generator) }
        let body = String(repeating: "0123456789", count: Int.random(in: 0...2, using: &generator))
        return "HTTP/1.1 \(status) Scripted\r\n\(head.map { $0 + "\r\n" }.joined())\r\n\(body)"
    }
}
