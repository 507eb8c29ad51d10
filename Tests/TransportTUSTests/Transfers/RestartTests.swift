import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Programs that exit during an upload, and restart with only the checkpoint.
@Suite(.timeLimit(.minutes(5))) struct RestartTests {
    /// The fields of a checkpoint that these tests read.
    private struct Stored: Decodable {
        struct Request: Decodable {
            var taken: Int
        }
        var unanswered: Request?
        var chunkLimit: Int?
    }

    private func stored(_ checkpoint: Checkpoint?) throws -> Stored {
        try JSONDecoder().decode(Stored.self, from: try #require(checkpoint).data)
    }

    private func sizes(_ requests: some Sequence<ReceivedRequest>) -> [Int] {
        requests.filter { $0.method == "PATCH" }.map(\.contentLength)
    }

    /// The network path forwards only complete requests of at most 2 MB. The program is killed as soon as it has sent more than 2 MB of a
    /// request.
    @Test func remembersThatPathBuffersRequests() async throws {
        let (size, maximumForwarded) = (16_000_000, 2_000_000)
        let storedBytes = Locked(0)
        var upload = try TestUpload(size: size) { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(storedBytes.withLock { $0 })]
            // If no byte is confirmed, the upload restarts, because the server may have been killed as well.
            case "DELETE": return [.tus(204)]
            case _ where request.contentLength > maximumForwarded: return [.read(2 * maximumForwarded), .silence]
            default:
                let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
                return [
                    .read(nil), .call { storedBytes.withLock { $0 = offset + request.contentLength } },
                    .accepted(offset + request.contentLength),
                ]
            }
        }
        var checkpoint: Checkpoint?
        var limit = Int.max
        for _ in 0..<20 where storedBytes.withLock({ $0 }) < size {
            let before = upload.requests.count
            upload.recorder = Recorder()
            let (transport, start, copy) = (TUSTransport(), checkpoint, upload)
            let program = Task {
                defer { copy.recorder.end() }
                return try await copy.run(from: start, by: transport)
            }
            for await saved in upload.recorder.saved {
                checkpoint = saved
                guard let taken = try stored(saved).unanswered?.taken, taken > maximumForwarded else { continue }
                program.cancel()
                break
            }
            _ = await program.result
            await transport.shutdown()
            #expect(sizes(upload.requests.dropFirst(before)).allSatisfy { $0 <= limit }, "the limit is remembered")
            if let taken = try stored(checkpoint).unanswered?.taken { limit = taken / 2 }
        }
        #expect(storedBytes.withLock { $0 } == size)
        #expect(sizes(upload.requests).first == size)
        #expect(limit < size)
        await upload.end()
    }

    /// A request of an earlier process was interrupted, or that process was killed during the request. The warning depends on whether the server
    /// reports bytes of that request.
    @Test(arguments: [
        (#""uncountedRequest":{"offset":100,"taken":70}"#, 100, 1), (#""uncountedRequest":{"offset":100,"taken":70}"#, 150, 0),
        (#""unanswered":{"offset":100,"taken":70}"#, 100, 1), (#""unanswered":{"offset":100,"taken":70}"#, 150, 0),
        (#""unanswered":{"offset":100,"taken":70,"wasServerThere":true}"#, 100, 1),
        (#""unanswered":{"offset":100,"taken":70,"wasServerThere":true}"#, 150, 0),
    ])
    func warnsAboutUncertainBytes(request: String, offset: Int, warnings: Int) async throws {
        let upload = try TestUpload(size: 200, answers: [[.offset(offset)], [.accepted(200)], [.answer(404)]])
        let known = #"{"url":"\#(upload.server.url("/1"))","confirmed":100,\#(request)}"#
        let receipt = try await upload.run(from: Checkpoint(data: Data(known.utf8), confirmed: 100))
        #expect(receipt.warnings.count == warnings && receipt.warnings.first?.contains(" 70 bytes") ?? true, "\(receipt.warnings)")
        #expect(upload.methods == ["HEAD", "PATCH"] + (warnings > 0 ? ["GET"] : []))
        await upload.end()
    }

    /// The size of the downloaded file shows whether it contains bytes that the server's offset did not include. A page from another server proves
    /// nothing.
    @Test(arguments: [
        (ServerStep.tus(206, ["Content-Range": "bytes 0-0/200"], body: "x"), 0, true),
        (.answer(200, body: String(repeating: "x", count: 200)), 0, true),
        (.tus(206, ["Content-Range": "bytes 0-0/270"], body: "x"), 0, false),
        (.tus(200, body: String(repeating: "x", count: 270)), 1, true),
        (.tus(206, ["Content-Range": "bytes 0-0/270", "Content-Encoding": "gzip"], body: "x"), 1, true),
        (.answer(200, body: "<html>"), 1, true), (.tus(206, ["Content-Range": "bytes 0-0/*"], body: "x"), 1, true),
        (.tus(500), 1, true), (.reset, 1, true), (.silence, 1, true),
    ])
    func comparesDownloadedSize(response: ServerStep, warnings: Int, isComplete: Bool) async throws {
        let upload = try TestUpload(size: 200, answers: [[.offset(100)], [.accepted(200)], [response], [.tus(204)]])
        let known = #"{"url":"\#(upload.server.url("/1"))","confirmed":100,"uncountedRequest":{"offset":100,"taken":70}}"#
        let checkpoint = Checkpoint(data: Data(known.utf8), confirmed: 100)
        if isComplete {
            #expect(try await upload.run(from: checkpoint).warnings.count == warnings)
            // libcurl repeats the request if a reused connection breaks.
            #expect(upload.methods.prefix(3) == ["HEAD", "PATCH", "GET"])
        } else {
            let error = await upload.failure(from: checkpoint)
            #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch)
            #expect(upload.methods == ["HEAD", "PATCH", "GET", "DELETE"])
        }
        await upload.end()
    }

    /// A gateway responded in place of the server, so the client does not know which bytes the server received.
    @Test(arguments: [502, 504]) func warnsAfterGatewayError(status: Int) async throws {
        let answers: [[ServerStep]] = [
            [.offset(100)], [.answer(status)], [.offset(100)], [.offset(100)], [.accepted(200)], [.answer(404)],
        ]
        let upload = try TestUpload(size: 200, answers: answers)
        let known = #"{"url":"\#(upload.server.url("/1"))","confirmed":100}"#
        #expect(await upload.failure(from: Checkpoint(data: Data(known.utf8), confirmed: 100))?.failureClass == .transient)
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(receipt.warnings.count == 1 && receipt.warnings.first?.contains(" 100 bytes") == true, "\(receipt.warnings)")
        #expect(upload.methods == ["HEAD", "PATCH", "HEAD", "HEAD", "PATCH", "GET"])
        await upload.end()
    }

    /// If no byte is confirmed, the upload restarts instead of continuing with a warning.
    @Test(arguments: ["uncountedRequest", "unanswered"]) func restartsUploadWithUncertainFirstBytes(field: String)
        async throws
    {
        let upload = try TestUpload(size: 200, answers: [[.offset(0)], [.tus(204)], [.created], [.accepted(200)]])
        let known = #"{"url":"\#(upload.server.url("/1"))","confirmed":0,"\#(field)":{"offset":0,"taken":70}}"#
        let receipt = try await upload.run(from: Checkpoint(data: Data(known.utf8), confirmed: 0))
        #expect(receipt.warnings.isEmpty && upload.methods == ["HEAD", "DELETE", "POST", "PATCH"])
        await upload.end()
    }

    /// A checkpoint in a damaged database may contain arbitrary numbers. The attempt uses the server's offset. An attempt with segments must
    /// not crash.
    @Test(arguments: [Int64.min, -1, .max]) func toleratesInvalidNumbersInCheckpoint(position: Int64) async throws {
        let request = #"{"offset":\#(position),"taken":\#(position)}"#
        let numbers = #""confirmed":\#(position),"unverified":\#(position),"uncounted":\#(position),"refusedOffset":\#(position)"#
        let upload = try TestUpload(size: 200, answers: [[.offset(100)], [.accepted(200)], [.answer(404)]])
        let url = upload.server.url("/1")
        let whole = #"{"url":"\#(url)",\#(numbers),"uncountedRequest":\#(request),"unanswered":\#(request),"chunkLimit":\#(position)}"#
        _ = try await upload.run(from: Checkpoint(data: Data(whole.utf8), confirmed: position))
        #expect(upload.methods.prefix(2) == ["HEAD", "PATCH"])
        await upload.end()

        let segments = Array(repeating: "{\(numbers)}", count: 200).joined(separator: ",")
        let segmented = try TestUpload(size: 200) { _, _ in [.tus(500)] }
        let split = #"{\#(numbers),"partSize":\#(max(1, position)),"parts":[\#(segments)]}"#
        #expect(await segmented.failure(from: Checkpoint(data: Data(split.utf8), confirmed: position)) != nil)
        await segmented.end()
    }

    @Test func remembersAcceptedSize() async throws {
        let size = 3_000_000
        let upload = try TestUpload(size: size) { request, number in
            switch number {
            case 0: return [.created]
            case 1, 3: return [.answer(413)]
            case 2, 4: return [.offset(0)]
            case 6: return [.read(nil), .reset]
            case 7, 8: return [.offset(750_000)]
            default:
                let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
                return [.accepted(offset + request.contentLength)]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(sizes(upload.requests) == [size, size / 2, 750_000, 750_000])
        let transport = TUSTransport()
        _ = try await upload.run(from: upload.recorder.checkpoints.last, by: transport)
        #expect(sizes(upload.requests.dropFirst(8)) == [750_000, 750_000, 750_000])
        await transport.shutdown()
        await upload.end()
    }

    /// The server responded, so it received the whole request. The client must not conclude that the network path interrupts large
    /// requests.
    @Test(arguments: [true, false]) func doesNotMistakeResponseForInterruption(isOffsetReported: Bool) async throws {
        let size = 4_000_000
        let upload = try TestUpload(size: size) { request, number in
            switch number {
            case 0: return [.created]
            case 1: return [.read(nil), .tus(503)]
            case 2: return [isOffsetReported ? .offset(0) : .tus(503)]
            case 3: return [.offset(0)]
            default:
                let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
                return [.accepted(offset + request.contentLength)]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        let transport = TUSTransport()
        _ = try await upload.run(from: upload.recorder.checkpoints.last, by: transport)
        #expect(sizes(upload.requests) == [size, size])
        await transport.shutdown()
        await upload.end()
    }

    /// After a cancelled request, the checkpoint counts only the bytes of this request, not the bytes of earlier requests.
    @Test func checkpointCountsOnlyBytesOfCancelledRequest() async throws {
        let size = 4_000_000
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let patches = Locked(0)
        var upload = try TestUpload(size: size) { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            case "DELETE": return [.tus(204)]
            default:
                let number = patches.withLock { patches in
                    defer { patches += 1 }
                    return patches
                }
                switch number {
                case 0: return [.read(nil), .answer(413)]
                case 1: return [.read(1000), .call { arrival.finish() }, .silence]
                default: return [.read(nil), .accepted(size / 2 * (number - 1))]
                }
            }
        }
        let left = Locked<Int?>(size + 1000)
        upload.allowance = { wanted in
            left.withLock { left in
                guard let rest = left else { return Allowance(bytes: wanted) }
                let granted = min(rest, wanted)
                left = rest - granted
                return Allowance(bytes: granted, retryAfter: granted == 0 ? .seconds(3600) : .zero)
            }
        }
        let task = Task { [upload] in try await upload.run() }
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        left.withLock { $0 = nil }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(sizes(upload.requests) == [size, size / 2, size / 2, size / 2])
        await upload.end()
    }
}
