import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct StreamTests {
    private let fixture: QueueFixture
    private let name: RemotePath

    init() throws {
        fixture = try QueueFixture()
        name = try RemotePath("stream")
    }

    private func content(_ size: Int) -> Data { DownloadFixture.content(size) }

    private var spooled: [String] {
        let folder = fixture.folder.path.appending("store").appending("spool")
        return (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
    }

    private func arrived() -> Data? { fixture.memory.contents(of: "stream") }

    @Test(arguments: [(0, 7), (1, 7), (12_345, 77), (12_345, 50_000)]) func sendsChunksOfAnySize(_ size: Int, _ chunkSize: Int) async throws
    {
        let queue = try await fixture.openWithAccounts()
        let chunks = CountedChunks(content(size), size: chunkSize)
        let session = try await queue.enqueue(.upload(items: [.stream(chunks, as: name, ahead: 3_000)], to: "a"))
        let before = try await session.status
        #expect(before.name == "stream" && before.statistics.bytesTotal == nil && chunks.requestCount.withLock { $0 } == 0)
        try await queue.start()
        let end = try await session.value
        #expect(end.statistics.bytesTotal == Int64(size) && end.statistics.bytesDone == Int64(size))
        #expect(arrived() == content(size))
        #expect(try await queue.items(of: session.id).map(\.bytesTotal) == [Int64(size)])
        await queue.shutdown()
        #expect(spooled == [])
    }

    /// A stream may last for months and need any number of attempts, so attempts must use no memory after their end.
    @Test func endedAttemptsOfStreamUseNoMemory() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("stream", atByte: 2_000)
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        try await writer.write(content(10_000))
        try await gate.reached()
        struct Reference { weak var run: LiveRun? }
        let first = Reference(run: await queue.live.values.first)
        #expect(first.run != nil)
        _ = try await session.pause()
        gate.open()
        while try await session.status.state != .paused { await Task.yield() }
        // The tasks of the run end a moment later.
        for _ in 0..<10_000 where first.run != nil { await Task.yield() }
        #expect(first.run == nil)
        try await session.resume()
        writer.finish()
        #expect(try await session.value.statistics.bytesTotal == 10_000)
        #expect(arrived() == content(10_000))
        await queue.shutdown()
    }

    /// Only the stream lacks space, because its spool file is on a separate file system.
    @Test func streamWaitsForDiskSpace() async throws {
        let store = fixture.folder.path.appending("store")
        let disk = try SmallDisk(.mounted, in: store, folder: "spool", megabytes: 1)
        defer { withExtendedLifetime(disk) {} }
        guard disk.kind == .mounted else { return }
        let queue = try await fixture.openWithAccounts()
        let filler = store.appending("spool").appending("filler").string
        try Data(count: 600_000).write(to: URL(fileURLWithPath: filler))
        let events = queue.events
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        try await queue.start()
        try await writer.write(content(700_000))
        writer.finish()
        let error = await events.first { kind -> TransferError? in
            if case .attemptFailed(session.id, let error, _) = kind { return error }
            return nil
        }
        #expect(error?.code == .diskFull && error?.message.contains("Free some space") == true)
        let status = try await session.status
        #expect(status.state == .running && status.attempts == 1)
        #expect(status.why == error.map { WaitReason.noSpace($0) })
        await fixture.clock.waitForSleep(of: .seconds(5))
        try FileManager.default.removeItem(atPath: filler)
        fixture.clock.advance(by: .seconds(5))
        #expect(try await session.value.why == nil)
        #expect(arrived() == content(700_000))
        await queue.shutdown()
    }

    @Test func sendsArraysOfBytes() async throws {
        let queue = try await fixture.openWithAccounts()
        let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        for byte in 1...3 as ClosedRange<UInt8> { continuation.yield([byte, byte]) }
        continuation.finish()
        let session = try await queue.enqueue(.upload(items: [.stream(chunks, as: name)], to: "a"))
        try await queue.start()
        _ = try await session.value
        #expect(arrived() == Data([1, 1, 2, 2, 3, 3]))
        await queue.shutdown()
    }

    @Test func limitsLeadOfProducer() async throws {
        let queue = try await fixture.openWithAccounts()
        let latch = Latch()
        // The server confirms 2,000 bytes, and up to 5,000 more may wait. So seven chunks of 1,000 bytes fit, and the eighth does not.
        let chunks = CountedChunks(content(50_000), size: 1_000, opening: latch, at: 8)
        let gate = fixture.memory.gate("stream", atByte: 2_000)
        let session = try await queue.enqueue(.upload(items: [.stream(chunks, as: name, ahead: 5_000)], to: "a"))
        try await queue.start()
        try await gate.reached()
        try await latch.wait()
        let file = try #require(spooled.first)
        let path = fixture.folder.path.appending("store").appending("spool").appending(file)
        #expect(try SourceIdentity(ofFileAt: path).size <= 7_000 && chunks.requestCount.withLock { $0 } == 8)
        #expect(try await session.status.statistics.bytesTotal == nil)
        gate.open()
        #expect(try await session.value.statistics.bytesDone == 50_000)
        #expect(arrived() == content(50_000))
        await queue.shutdown()
    }

    @Test func producerContinuesAfterPause() async throws {
        let queue = try await fixture.openWithAccounts()
        let latch = Latch()
        let chunks = CountedChunks(content(50_000), size: 1_000, opening: latch, at: 8)
        let gate = fixture.memory.gate("stream", atByte: 2_000)
        let session = try await queue.enqueue(.upload(items: [.stream(chunks, as: name, ahead: 5_000)], to: "a"))
        try await queue.start()
        try await gate.reached()
        try await latch.wait()
        try await queue.pause(session.id)
        gate.open()
        try await queue.resume(session.id)
        #expect(try await session.value.statistics.bytesDone == 50_000)
        #expect(arrived() == content(50_000) && fixture.memory.attempts.map(\.startOffset) == [0, 2_000])
        await queue.shutdown()
    }

    @Test func continuesAfterLostConnection() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.faults.append(.cut(afterBytes: 7_500))
        let session = try await queue.enqueue(
            .upload(items: [.stream(CountedChunks(content(20_000), size: 700), as: name, ahead: 3_000)], to: "a"))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await session.value.statistics.bytesDone == 20_000)
        #expect(arrived() == content(20_000) && fixture.memory.attempts.map(\.startOffset) == [0, 7_500])
        await queue.shutdown()
    }

    // MARK: Length

    @Test func reportsKnownLength() async throws {
        let queue = try await fixture.openWithAccounts()
        let chunks = CountedChunks(content(5_000), size: 700)
        let session = try await queue.enqueue(.upload(items: [.stream(chunks, as: name, length: 5_000)], to: "a"))
        #expect(try await session.status.statistics.bytesTotal == 5_000)
        try await queue.start()
        #expect(try await session.value.statistics.bytesDone == 5_000)
        await queue.shutdown()
    }

    @Test func knownSizeIncludesSentBytes() async throws {
        let memory = MemoryTransport(chunkSize: 1_000, chunksPerCheckpoint: 3)
        let fixture = try QueueFixture(memory: memory)
        let queue = try await fixture.openWithAccounts()
        let gates = [2_000, 4_000].map { memory.gate("stream", atByte: $0) }
        let (item, writer) = TransferItem.stream(as: name)
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        let events = queue.events
        let progress = Task {
            await events.first { if case .progress(_, let figures) = $0, figures.bytesSent > 0 { figures } else { nil } }
        }
        try await queue.start()
        try await writer.write(content(10_000))
        for (gate, sent) in zip(gates, [2_000, 4_000] as [Int64]) {
            try await gate.reached()
            let figures = try await session.status.statistics
            #expect(figures.bytesTotal == nil && figures.bytesSent == sent)
            #expect(figures.bytesDone <= figures.bytesSent && figures.bytesSent <= figures.bytesKnown)
            await fixture.clock.waitForSleep(of: .milliseconds(100))
            fixture.clock.advance(by: .milliseconds(100))
            gate.open()
        }
        let shown = try #require(await progress.value)
        #expect(shown.bytesTotal == nil && shown.bytesDone <= shown.bytesSent && shown.bytesSent <= shown.bytesKnown)
        writer.finish()
        #expect(try await session.value.statistics.bytesTotal == 10_000)
        await queue.shutdown()
    }

    @Test(arguments: [4_999, 5_001]) func wrongLengthFailsItem(_ length: Int64) async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(
            .upload(items: [.stream(CountedChunks(content(5_000), size: 700), as: name, length: length)], to: "a"))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .sourceLost && error?.message.contains("\(length)") == true && arrived() == nil)
        await queue.shutdown()
    }

    // MARK: Failures

    @Test func itemFailsWithProducersError() async throws {
        let queue = try await fixture.openWithAccounts()
        let failure = TransferError(.permanent, .rejected, "The camera went away.")
        let session = try await queue.enqueue(
            .upload(items: [.stream(CountedChunks(content(5_000), size: 700, failure: failure), as: name)], to: "a"))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .sourceLost && error?.code == .producerGone)
        #expect(error?.message.contains("stream") == true && error?.message.contains("The camera went away.") == true)
        #expect(arrived() == nil)
        // The queue removed the stream's spool file after the failure. So a retry also fails, with an error that suggests another stream.
        try await queue.retry(session.id)
        let retryError = await #expect(throws: TransferError.self) { try await session.value }
        #expect(retryError?.failureClass == .sourceLost && retryError?.message.contains("with another stream") == true)
        await queue.shutdown()
    }

    @Test func sendsStreamOnlyOnce() async throws {
        let queue = try await fixture.openWithAccounts()
        let item = TransferItem.stream(CountedChunks(content(10), size: 7), as: name)
        await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "nobody")) }
        await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item, item], to: "a")) }
        let session = try await queue.enqueue(.upload(items: [item], to: "a"))
        let error = await #expect(throws: QueueError.self) { try await queue.addItems([item], to: .id(session.id)) }
        #expect(error?.code == .invalidRequest)
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 1)
        await queue.shutdown()
    }

    // MARK: Releasing disk space

    /// Uses large chunks, because the queue releases disk space in steps of megabytes.
    @Test func releasesDiskSpaceOfConfirmedBytes() async throws {
        let memory = MemoryTransport(chunkSize: 256 << 10)
        let fixture = try QueueFixture(memory: memory)
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("stream", atByte: 4 << 20)
        let session = try await queue.enqueue(
            .upload(items: [.stream(CountedChunks(content(6 << 20), size: 100_000), as: name, ahead: 1 << 20)], to: "a"))
        try await queue.start()
        try await gate.reached()
        let folder = fixture.folder.path.appending("store").appending("spool")
        let file = folder.appending(try #require(try FileManager.default.contentsOfDirectory(atPath: folder.string).first))
        // The queue releases the space in the background.
        while try Self.bytesOnDisk(file) > 2 << 20 {
            try Task.checkCancellation()
            await Task.yield()
        }
        #expect(try SourceIdentity(ofFileAt: file).size >= 4 << 20)
        // Bytes whose space was released can't be sent again.
        memory.faults.append(.forget)
        try await queue.pause(session.id)
        gate.open()
        try await queue.resume(session.id)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .sourceLost && error?.message.contains("Cannot restart ") == true)
        await queue.shutdown()
    }

    /// Returns the number of bytes that a file occupies on disk. The function stat(2) counts blocks of 512 bytes (inode(7)). Foundation assumes
    /// another block size on Linux.
    private static func bytesOnDisk(_ path: FilePath) throws -> Int {
        var status = stat()
        try #require(unsafe path.withPlatformString { unsafe stat($0, &status) } == 0)
        return Int(status.st_blocks) * 512
    }

    @Test func slowProducerDoesNotCountAsStall() {
        let isProducerAwaited = Locked(true)
        let file = ActiveFile(position: 0, size: nil, start: 0, isAwaiting: { _ in isProducerAwaited.withLock { $0 } })
        var watch = StallWatch(file, stallTimeout: .seconds(60), responseTimeout: .seconds(300), at: .zero)
        file.report(sent: 10, confirmed: 0)
        let times: [Duration] = [.seconds(1), .seconds(1_000)]
        #expect(times.map { watch.sample(file, at: $0) } == [false, false])
        isProducerAwaited.withLock { $0 = false }
        let later: [Duration] = [.seconds(1_059), .seconds(1_060)]
        #expect(later.map { watch.sample(file, at: $0) } == [false, true], "a server that confirms no bytes counts as stalled")
    }
}
