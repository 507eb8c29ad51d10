import Dispatch
import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct ParallelDownloadTests {
    private static func transfer(_ segments: Int = 3, _ script: @escaping ScriptedServer.Script) throws -> TestTransfer {
        var transfer = try TestTransfer("get", "/files/", script)
        transfer.options.segmentsPerFile = segments
        transfer.endpoint.settings = ["parallelThreshold": "1000"]
        return transfer
    }

    private static func ranges(_ transfer: TestTransfer) -> [Range<Int>] {
        transfer.server.requests.compactMap(RangeServer.range).sorted { $0.lowerBound < $1.lowerBound }
    }

    /// Blocks its callers until a given number of connections have arrived.
    private final class Gate: Sendable {
        private let arrived: Locked<Set<Int>> = Locked([])
        private let semaphore = DispatchSemaphore(value: 0)
        private let count: Int

        init(_ count: Int) { self.count = count }

        func pass(_ connection: Int) {
            let (isNew, isLast) = arrived.withLock { arrived in
                let isNew = arrived.insert(connection).inserted
                return (isNew, isNew && arrived.count == count)
            }
            guard isNew else { return }
            if isLast { for _ in 0..<count { semaphore.signal() } }
            #expect(semaphore.wait(timeout: .now() + 60) == .success, "fewer connections than requested")
        }
    }

    @Test func downloadsInParallel() async throws {
        let server = RangeServer(size: 10_000)
        let gate = Gate(3)
        let transfer = try Self.transfer { request, number in
            let pass = ServerStep.call { gate.pass(request.connection) }
            if number == 0 { return [server.beginning(request, bytes: 100), pass, server.rest(request, after: 100)] }
            return [pass, server.answer(request)]
        }
        let receipt = try await transfer.run()
        #expect(receipt.bytes == 10_000)
        #expect(transfer.content == server.text)
        #expect(transfer.server.connectionCount == 3)
        var position = 0
        for range in Self.ranges(transfer) {
            #expect(range.lowerBound == position, "each byte is requested once")
            position = range.upperBound
        }
        #expect(position == 10_000)
        #expect(transfer.server.requests.first?.headers["if-range"] == nil)
        #expect(transfer.server.requests.dropFirst().allSatisfy { $0.headers["if-range"] == "\"v1\"" })
        let progress = transfer.recorder.progress
        #expect(progress.map(\.sent) == progress.map(\.sent).sorted())
        #expect(progress.last.map { [$0.sent, $0.confirmed] } == [10_000, 10_000])
        await transfer.end()
    }

    @Test(arguments: [0, 1, 999, 1000, 1001]) func downloadsSmallFileOnOneConnection(size: Int) async throws {
        let server = RangeServer(size: size)
        var transfer = try Self.transfer { request, _ in [server.answer(request)] }
        transfer.endpoint.settings = ["parallelThreshold": "1002"]
        #expect(try await transfer.run().bytes == size)
        #expect(transfer.content == server.text)
        #expect(transfer.server.requests.count == (size == 0 ? 2 : 1))
        #expect(transfer.server.connectionCount == 1)
        await transfer.end()
    }

    /// Before the first byte, no part file exists, so two concurrent requests would each create one.
    @Test func opensOtherConnectionsAfterFirstByte() async throws {
        let server = RangeServer(size: 10_000)
        let transfer = try Self.transfer { request, number in
            number == 0 ? [server.beginning(request, bytes: 0), .close] : [server.answer(request)]
        }
        #expect(await transfer.failure()?.failureClass == .transient)
        #expect(transfer.server.requests.count == 1)
        #expect(try await transfer.run().bytes == 10_000)
        #expect(transfer.content == server.text)
        await transfer.end()
    }

    /// The server ignores ranges of one file. The client still requests ranges of another file.
    @Test func supportsServersWithRangesForSomeFiles() async throws {
        let server = RangeServer(size: 10_000)
        var transfer = try Self.transfer(1) { request, number in
            switch number {
            case 0, 2: [.raw("HTTP/1.1 200 Scripted\r\nETag: \"v1\"\r\nContent-Length: 10000\r\n\r\n\(server.text.prefix(5000))"), .close]
            case 1: [.answer(200, ["ETag": "\"v1\""], body: server.text)]
            default:
                [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 5000-9999/10000"], body: String(server.text.dropFirst(5000)))]
            }
        }
        _ = await transfer.failure()
        let first = try #require(transfer.recorder.checkpoints.last)
        #expect(await transfer.failure(from: first)?.failureClass == .resumeLost)
        transfer.remotePath = "b.bin"
        _ = await transfer.failure()
        let second = try #require(transfer.recorder.checkpoints.last)
        #expect(transfer.recorder.checkpoints.count == 2 && second.confirmed == 5000)
        #expect(try await transfer.run(from: second).bytes == 10_000)
        #expect(transfer.content == server.text)
        await transfer.end()
    }

    /// The server accepts only two connections.
    @Test func otherConnectionsTakeOverRangesOfRefusedConnections() async throws {
        let server = RangeServer(size: 20_000)
        let transfer = try Self.transfer(4) { request, _ in
            request.connection <= 2 ? [server.answer(request)] : [.answer(503, ["Connection": "close"]), .close]
        }
        #expect(try await transfer.run().bytes == 20_000)
        #expect(transfer.content == server.text)
        await transfer.end()
    }

    /// When the server rejects the request for the last range, the other connection has already finished its ranges.
    @Test func repeatsLastRangeAfterRejection() async throws {
        let server = RangeServer(size: 2_000)
        let (hasBegun, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let transfer = try Self.transfer(2) { request, number in
            switch number {
            case 0:
                let wait = ServerStep.call { #expect(hasBegun.wait(timeout: .now() + 60) == .success) }
                return [server.beginning(request, bytes: 100), wait, server.rest(request, after: 100)]
            case 1:
                let wait = ServerStep.call { #expect(hasEnded.wait(timeout: .now() + 60) == .success) }
                return [.call { hasBegun.signal() }, wait, .answer(503, ["Connection": "close"]), .close]
            default: return [server.answer(request)]
            }
        }
        let watch = Task {
            for await count in transfer.recorder.sentBytes.stream where count == 1_000 { return hasEnded.signal() }
            return 0
        }
        #expect(try await transfer.run().bytes == 2_000)
        #expect(transfer.content == server.text)
        watch.cancel()
        await transfer.end()
    }

    @Test func backsOffIfServerRequestsDelay() async throws {
        let server = RangeServer(size: 20_000)
        let transfer = try Self.transfer { request, number in
            number == 0 ? [server.answer(request)] : [.answer(429, ["Retry-After": "7"])]
        }
        #expect(await transfer.failure()?.retryAfter == .seconds(7))
        await transfer.end()
    }

    @Test func doesNotRequestReceivedBytesAgain() async throws {
        let server = RangeServer(size: 10_000)
        let breaksConnections = Locked(true)
        let transfer = try Self.transfer { request, _ in
            guard breaksConnections.withLock({ $0 }), let range = RangeServer.range(request) else { return [server.answer(request)] }
            // Sends only 100 bytes of the range that starts at byte 1,000, and nothing of ranges that start at byte 5,000 or later.
            if range.lowerBound == 1000 { return [server.beginning(request, bytes: 100), .close] }
            return range.lowerBound >= 5000 ? [.close] : [server.answer(request)]
        }
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .transient)
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(checkpoint.confirmed >= 1100)
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed <= checkpoint.confirmed })
        let partFileContent = Array(try #require(transfer.content).utf8)
        #expect(partFileContent.prefix(Int(checkpoint.confirmed)) == server.content.prefix(Int(checkpoint.confirmed)))
        let before = transfer.server.requests.count
        breaksConnections.withLock { $0 = false }
        #expect(try await transfer.run(from: checkpoint).bytes == 10_000)
        #expect(transfer.content == server.text)
        let again = transfer.server.requests.dropFirst(before)
        #expect(again.allSatisfy { $0.headers["if-range"] == "\"v1\"" })
        let missing = again.compactMap(RangeServer.range).reduce(0) { $0 + $1.count }
        #expect(missing == 10_000 - Self.received(checkpoint).reduce(0) { $0 + $1.count })
        await transfer.end()
    }

    private static func received(_ checkpoint: Checkpoint) -> [Range<Int>] {
        struct Stored: Decodable {
            var received: [Range<Int>]?
        }
        let stored = try? JSONDecoder().decode(Stored.self, from: checkpoint.data)
        return stored?.received ?? [0..<Int(checkpoint.confirmed)]
    }

    /// Ranges received after a gap are kept, with any number of connections. The test erases the bytes that the checkpoint does not cover,
    /// because a crash may lose them.
    @Test(arguments: [1, 3]) func fillsGapBeforeReceivedRanges(segments: Int) async throws {
        let server = RangeServer(size: 10_000)
        let breaksConnections = Locked(true)
        let sentLaterRange = DispatchSemaphore(value: 0)
        var transfer = try Self.transfer { request, number in
            guard breaksConnections.withLock({ $0 }), let range = RangeServer.range(request) else { return [server.answer(request)] }
            if range.lowerBound >= 1000 { return [server.answer(request), .call { sentLaterRange.signal() }] }
            // Requests in the first range receive only a few bytes.
            let wait = ServerStep.call { if number == 0 { _ = sentLaterRange.wait(timeout: .now() + 60) } }
            return [server.beginning(request, bytes: 100), wait, .close]
        }
        _ = await transfer.failure()
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(checkpoint.confirmed < 1000)
        let received = Self.received(checkpoint)
        #expect(received.count > 1)
        let path = transfer.folder.appending(".file.part").string
        var partFileContent = [UInt8](try #require(FileManager.default.contents(atPath: path))) + Array(repeating: 0, count: 100)
        for index in partFileContent.indices where !received.contains(where: { $0.contains(index) }) { partFileContent[index] = 0 }
        try Data(partFileContent).write(to: URL(fileURLWithPath: path))
        let before = transfer.server.requests.count
        breaksConnections.withLock { $0 = false }
        transfer.options.segmentsPerFile = segments
        #expect(try await transfer.run(from: checkpoint).bytes == 10_000)
        #expect(transfer.content == server.text)
        #expect(transfer.server.requests.dropFirst(before).compactMap(RangeServer.range).allSatisfy { !$0.isEmpty })
        await transfer.end()
    }

    @Test func restartsChangedFile() async throws {
        let server = RangeServer(size: 10_000)
        let transfer = try Self.transfer { request, number in
            number == 0 ? [server.answer(request), .call { server.change() }] : [.call { server.change() }, server.answer(request)]
        }
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .resumeLost)
        await transfer.end()
    }

    @Test func acceptsWholeFileFromServerWithoutRanges() async throws {
        let server = RangeServer(size: 10_000)
        let transfer = try Self.transfer { _, _ in [.answer(200, ["ETag": "\"v1\""], body: server.text)] }
        #expect(try await transfer.run().bytes == 10_000)
        #expect(transfer.content == server.text)
        #expect(transfer.server.requests.count == 1)
        await transfer.end()
    }

    @Test func downloadsInOneRequestWithoutETag() async throws {
        let server = RangeServer(size: 10_000, tag: nil)
        let transfer = try Self.transfer { request, _ in [server.answer(request)] }
        #expect(try await transfer.run().bytes == 10_000)
        #expect(transfer.content == server.text)
        #expect(transfer.server.requests.map { $0.headers["range"] } == ["bytes=0-999", nil])
        #expect(transfer.recorder.checkpoints.isEmpty)
        await transfer.end()
    }

    @Test func rejectsMoreBytesThanRequested() async throws {
        let server = RangeServer(size: 10_000)
        let transfer = try Self.transfer { request, number in
            guard number > 0, let range = RangeServer.range(request) else { return [server.answer(request)] }
            let body = String(decoding: server.content[range.lowerBound...], as: UTF8.self)
            return [
                .answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes \(range.lowerBound)-9999/10000"], body: body)
            ]
        }
        #expect(await transfer.failure()?.failureClass == .protocolViolation)
        await transfer.end()
    }

    @Test func comparesChecksumOfWholeResponse() async throws {
        let server = RangeServer(String(repeating: "0123456789", count: 1000))
        let md5 = "K7VxWZpBgOHVQvdpBK3D3w=="
        var transfer = try Self.transfer { request, _ in [server.answer(request, ["Content-MD5": md5])] }
        transfer.options.verification = .checksum
        #expect(try await transfer.run().checksum == "md5:2bb571599a4180e1d542f76904adc3df")
        #expect(transfer.server.requests.map { $0.headers["range"] } == ["bytes=0-999", nil])
        await transfer.end()
    }

    @Test func comparesChecksumOfAllRanges() async throws {
        let server = RangeServer(String(repeating: "0123456789", count: 1000))
        let sha = "sha-256=:TCB1mK96INsOMzTdBEOZpA5GfLgbN/e6BaT3bcvY/Vk=:"
        var transfer = try Self.transfer { request, _ in [server.answer(request, ["Repr-Digest": sha])] }
        transfer.options.verification = .checksum
        let checksum = "sha256:4c207598af7a20db0e3334dd044399a40e467cb81b37f7ba05a4f76dcbd8fd59"
        #expect(try await transfer.run().checksum == checksum)
        #expect(Self.ranges(transfer).count > 2)
        await transfer.end()
    }
}
