import CurlEngine
import Foundation
import HTTPSupport
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP
import TransportSupport

/// Streams that are sent by PUT or POST while the app produces them.
@Suite struct LiveStreamTests {
    /// The number of bytes that the transport sends before it releases the first bytes of a stream.
    private static let releaseInterval = 4 << 20

    /// A stream whose readable bytes the test controls.
    private struct Stream {
        var transfer: TestTransfer
        let growth: SourceGrowth
        let content: [UInt8]

        /// - Parameters:
        ///   - size: The number of bytes that the stream will have.
        ///   - available: The number of bytes that are readable at the start.
        init(
            size: Int, available: Int, length: Int64? = nil, mode: String = "put", recorder: Recorder = Recorder(),
            headers: HeaderHook? = nil, _ script: @escaping ScriptedServer.Script
        ) throws {
            transfer = try TestTransfer(mode, size: size, recorder: recorder, headers: headers, script)
            growth = SourceGrowth(.growing(Int64(available)), length: length)
            content = TemporaryFile.content(size: size)
            transfer.source = UploadSource(
                path: try #require(transfer.file?.path),
                identity: SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: ""), growth: growth)
        }

        var requests: [ReceivedRequest] { transfer.server.requests }
    }

    @Test(arguments: ["put", "post"]) func sendsBytesWhileSourceGrows(mode: String) async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let stream = try Stream(size: 1_000, available: 10, mode: mode) { _, _ in
            [.read(10), .call { hasArrived.yield() }, .read(490), .call { hasArrived.yield() }, .answer(201, body: "stored")]
        }
        async let receipt = stream.transfer.run()
        var arrived = arrivals.makeAsyncIterator()
        await arrived.next()
        #expect(stream.growth.extent == .growing(10), "The first bytes arrive before the stream ends.")
        stream.growth.update(.growing(500))
        await arrived.next()
        stream.growth.update(.complete(1_000))
        #expect(try await receipt.bytes == 1_000)
        #expect(try await receipt.serverResponse?.text == "stored")
        #expect(try await receipt.warnings.isEmpty)
        let request = try #require(stream.requests.first)
        #expect(stream.requests.count == 1 && request.body == stream.content)
        #expect(request.isChunked && request.headers["content-length"] == nil)
        #expect(request.method == mode.uppercased() && (request.path == "/files/") == (mode == "post"))
        #expect(stream.transfer.recorder.progress.last.map { $0.sent == 1_000 && $0.confirmed == 1_000 } == true)
        await stream.transfer.end()
    }

    @Test func sendsDeclaredLength() async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let stream = try Stream(size: 1_000, available: 10, length: 1_000) { _, _ in
            [.read(10), .call { hasArrived.yield() }, .answer(200)]
        }
        async let receipt = stream.transfer.run()
        for await _ in arrivals { break }
        stream.growth.update(.complete(1_000))
        #expect(try await receipt.bytes == 1_000)
        #expect(stream.requests.first?.body == stream.content && stream.requests.first?.headers["content-length"] == "1000")
        await stream.transfer.end()
    }

    /// A server that knows the length considers the file complete when the last byte arrives. So the client sends this byte only after the
    /// producer has finished.
    @Test(arguments: [false, true]) func lastByteWaitsForEndOfStream(fails: Bool) async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let isComplete = Locked(false)
        let stream = try Stream(size: 1_000, available: 1_000, length: 1_000) { _, _ in
            [.read(999), .call { hasArrived.yield() }, .read(1), .call { isComplete.withLock { $0 = true } }, .answer(200)]
        }
        let receipt = Task { try await stream.transfer.run() }
        for await _ in arrivals { break }
        #expect(!isComplete.withLock { $0 })
        if fails {
            let cause = TransferError(.sourceLost, .producerGone, "The sensor stopped.")
            stream.growth.update(.failed(cause))
            await #expect(throws: cause) { try await receipt.value }
        } else {
            stream.growth.update(.complete(1_000))
            #expect(try await receipt.value.bytes == 1_000)
        }
        await stream.transfer.end()
        #expect(isComplete.withLock { $0 } == !fails)
    }

    /// Another client removed the folder. Until the queue releases the stream's first bytes, the transport can send the stream again.
    @Test func sendsStreamAgainAfterCreatingFolder() async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let statuses = [201, 409, 201, 201]
        var stream = try Stream(size: 1_000, available: 10) { _, number in
            guard number < statuses.count else { return [.silence] }
            let response = ServerStep.answer(statuses[number])
            return number == 1 ? [.read(10), .call { hasArrived.yield() }, response] : [response]
        }
        stream.transfer.endpoint.settings = HTTPOptions(webDAV: true).settings
        stream.transfer.remotePath = "a/1"
        let receipt = Task { [stream] in try await stream.transfer.run() }
        for await _ in arrivals { break }
        stream.growth.update(.complete(1_000))
        #expect(try await receipt.value.bytes == 1_000)
        #expect(stream.requests.map(\.method) == ["MKCOL", "PUT", "MKCOL", "PUT"])
        #expect(stream.requests.last?.body == stream.content)
        await stream.transfer.end()
    }

    @Test func sendsEmptyStream() async throws {
        let stream = try Stream(size: 1, available: 0) { _, _ in [.answer(200)] }
        async let receipt = stream.transfer.run()
        stream.growth.update(.complete(0))
        #expect(try await receipt.bytes == 0)
        #expect(stream.requests.first?.body.isEmpty == true)
        await stream.transfer.end()
    }

    @Test func producerErrorLeavesIncompleteBody() async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let isComplete = Locked<Bool?>(nil)
        let stream = try Stream(size: 1_000, available: 10) { _, _ in
            // The last step runs only if the body ends as an HTTP body must end.
            [.read(10), .call { hasArrived.yield() }, .read(nil), .call { isComplete.withLock { $0 = true } }]
        }
        async let failure = stream.transfer.failure()
        for await _ in arrivals { break }
        let cause = TransferError(.sourceLost, .producerGone, "The sensor stopped.")
        stream.growth.update(.failed(cause))
        #expect(await failure == cause)
        await stream.transfer.end()
        #expect(isComplete.withLock { $0 } == nil)
    }

    /// The server rejects the first request before its body. Later streams to this server are sent only once they have ended.
    @Test(arguments: [411, 501]) func sendsEndedStreamIfServerRequiresLength(status: Int) async throws {
        let (rejections, hasRejected) = AsyncStream.makeStream(of: Void.self)
        let stream = try Stream(size: 1_000, available: 10) { request, _ in
            guard request.isChunked else { return [.answer(201)] }
            return [.raw("HTTP/1.1 \(status) Scripted\r\nContent-Length: 0\r\n\r\n"), .call { hasRejected.yield() }, .close]
        }
        for number in 0..<2 {
            var again = stream
            let growth = SourceGrowth(.growing(10))
            again.transfer.source = UploadSource(
                path: try #require(stream.transfer.file?.path),
                identity: SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: ""), growth: growth)
            async let receipt = again.transfer.run()
            if number == 0 { for await _ in rejections { break } }
            growth.update(.complete(1_000))
            #expect(try await receipt.bytes == 1_000)
            #expect(try await receipt.warnings.first?.contains("requires the length of a stream") == true)
        }
        #expect(stream.requests.map(\.isChunked) == [true, false, false])
        #expect(stream.requests.dropFirst().allSatisfy { $0.body == stream.content && $0.headers["content-length"] == "1000" })
        await stream.transfer.end()
    }

    @Test func repeatsShortStreamAfterFailure() async throws {
        let stream = try Stream(size: 1_000, available: 500) { _, number in
            number == 0 ? [.read(500), .reset] : [.answer(200)]
        }
        #expect(await stream.transfer.failure()?.failureClass == .transient)
        #expect(stream.transfer.recorder.checkpoints.isEmpty)
        stream.growth.update(.complete(1_000))
        #expect(try await stream.transfer.run().bytes == 1_000)
        #expect(stream.requests.last?.body == stream.content)
        await stream.transfer.end()
    }

    /// The queue frees the bytes that a checkpoint covers, so the stream can't be sent again.
    @Test func longStreamCannotBeRepeatedAfterFailure() async throws {
        let size = 2 * Self.releaseInterval
        let stream = try Stream(size: size, available: size - 1) { _, _ in [.read(2 * Self.releaseInterval - 1), .reset] }
        let failure = await stream.transfer.failure()
        #expect(failure?.failureClass == .sourceLost, "\(String(describing: failure))")
        #expect(failure?.message.contains("Enqueue it again.") == true)
        let checkpoint = try #require(stream.transfer.recorder.checkpoints.last)
        #expect(checkpoint.confirmed >= Int64(Self.releaseInterval))
        let sent = stream.transfer.recorder.progress
        #expect(sent.allSatisfy { $0.confirmed <= checkpoint.confirmed && $0.confirmed <= $0.sent })
        #expect(await stream.transfer.failure(from: checkpoint)?.failureClass == .sourceLost)
        #expect(stream.requests.count == 1, "The transport does not send an interrupted stream again.")
        await stream.transfer.end()
    }

    /// A stream that can't be sent again fails with the server's response, even if the transport would repeat another request after this response.
    @Test(arguments: [400, 401]) func longStreamFailsWithResponse(status: Int) async throws {
        let size = 2 * Self.releaseInterval
        let recorder = Recorder()
        let text = "Unknown sensor"
        let hook: HeaderHook = { _, headers in headers }
        let stream = try Stream(size: size, available: size - 1, recorder: recorder, headers: status == 401 ? hook : nil) { _, _ in
            [
                .read(size - 1), .call { recorder.hasSaved.wait() },
                .raw("HTTP/1.1 \(status) Scripted\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"), .close,
            ]
        }
        let failure = try #require(await stream.transfer.failure())
        #expect(failure.description.contains("PUT returned \(status): Unknown sensor"), "\(failure)")
        let expected: FailureClass = status == 400 ? .permanent : .sourceLost
        #expect(failure.failureClass == expected, "\(failure)")
        #expect(stream.requests.count == 1)
        await stream.transfer.end()
    }

    /// The server has the file, and the stream can't be sent again.
    @Test func failedVerificationDoesNotLoseLongStream() async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let size = 2 * Self.releaseInterval
        var stream = try Stream(size: size, available: size - 1) { request, _ in
            guard request.method == "PUT" else { return [.answer(503)] }
            return [.read(10), .call { hasArrived.yield() }, .answer(201)]
        }
        stream.transfer.endpoint.settings = HTTPOptions(uploadCheck: .head).settings
        stream.transfer.options.verification = .size
        let running = Task { [stream] in try await stream.transfer.run() }
        for await _ in arrivals { break }
        stream.growth.update(.complete(Int64(size)))
        let receipt = try await running.value
        #expect(receipt.warnings.count == 1 && receipt.warnings.first?.contains("unverified") == true, "\(receipt.warnings)")
        #expect(stream.requests.map(\.method) == ["PUT", "HEAD"])
        await stream.transfer.end()
    }

    /// A server redirects before it reads the body, as with `Expect: 100-continue`, or after it received part of the body, because the
    /// client waits only briefly for the response to `Expect`.
    @Test(arguments: [0, 500]) func followsRedirect(after received: Int) async throws {
        let stream = try Stream(size: 1_000, available: 500) { request, _ in
            request.path == "/files/a.bin"
                // If the server closed the connection before it read the whole body, the client could lose the response.
                ? [
                    .read(received),
                    .raw("HTTP/1.1 307 Scripted\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .silence,
                ]
                : [.answer(200)]
        }
        async let receipt = stream.transfer.run()
        stream.growth.update(.complete(1_000))
        #expect(try await receipt.bytes == 1_000)
        #expect(stream.requests.map(\.path) == ["/files/a.bin", "/other"] && stream.requests.last?.body == stream.content)
        await stream.transfer.end()
    }

    /// The server sends success and closes the connection, although the stream has not ended, so the server can't have the whole file. The file is
    /// larger than the buffers of the connection. Otherwise, the client could pass the whole file to the connection before it sees the reset.
    @Test func earlySuccessIsError() async throws {
        let size = 32 << 20
        let (responses, hasResponded) = AsyncStream.makeStream(of: Void.self)
        let stream = try Stream(size: size, available: 500) { _, _ in
            [.read(500), .raw("HTTP/1.1 200 Scripted\r\nContent-Length: 0\r\n\r\n"), .call { hasResponded.yield() }, .reset]
        }
        async let failure = stream.transfer.failure()
        for await _ in responses { break }
        stream.growth.update(.complete(Int64(size)))
        let error = await failure
        #expect([.transient, .protocolViolation].contains(error?.failureClass), "\(String(describing: error))")
        await stream.transfer.end()
    }

    @Test func cancellationEndsRequest() async throws {
        let (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let stream = try Stream(size: 1_000, available: 10) { _, _ in [.read(10), .call { hasArrived.yield() }, .silence] }
        let running = Task { try await stream.transfer.run() }
        for await _ in arrivals { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        await stream.transfer.end()
    }

    /// A form request announces its length before its body, so the transport sends the form only once the stream is complete.
    @Test func formWaitsForEndOfStream() async throws {
        let (waits, hasWaited) = AsyncStream.makeStream(of: Void.self)
        var transfer = try TestTransfer("form", size: 1_000, answers: [[.answer(200)]])
        let growth = SourceGrowth(.growing(10), lift: { _ in hasWaited.yield() })
        transfer.source = UploadSource(
            path: try #require(transfer.file?.path),
            identity: SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: ""), growth: growth)
        async let receipt = transfer.run()
        for await _ in waits { break }
        #expect(transfer.server.connectionCount == 0)
        growth.update(.complete(1_000))
        #expect(try await receipt.bytes == 1_000)
        #expect(transfer.server.requests.first?.headers["content-length"] != nil)
        await transfer.end()
    }
}
